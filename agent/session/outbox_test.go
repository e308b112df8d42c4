package session

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stead-project/stead/records"
)

func seqs(rs []records.Report) (out []int64) {
	for _, r := range rs {
		out = append(out, r.Seq)
	}
	return out
}

func TestReportsAreGatheredUntilStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := NewOutbox(300*time.Millisecond, time.Second, time.Now)
		put := func(seq int64, change func(*records.Report)) {
			r := records.Report{ID: db0, Token: tok(5), Seq: seq, Phase: records.PhasePreparing}
			if change != nil {
				change(&r)
			}
			o.Put(r)
		}
		want := func(what string, want ...int64) {
			t.Helper()
			if due, _ := o.Due(); !slices.Equal(seqs(due), want) {
				t.Fatalf("%s: got %v, want %v", what, seqs(due), want)
			}
		}
		put(1, nil)
		want("progress waits")
		put(2, func(r *records.Report) { r.Cause = "ImageMissing" })
		if _, next := o.Due(); next != 300*time.Millisecond {
			t.Fatalf("next: got %s", next)
		}
		put(3, func(r *records.Report) { r.Phase, r.Ready = records.PhaseRunning, true })
		want("ready goes at once, in place of what waited", 3)
		want("and only once")
		o.SendAgain(nil)
		want("a new session is told again", 3)
		put(4, func(r *records.Report) { r.Phase = records.PhaseRunning })
		put(2, nil)
		want("while one is under way, others are gathered")
		if o.Stored(db0, tok(5), 3) {
			t.Fatal("a report that is not an end was taken for one")
		}
		want("no longer ready goes at once, also when the one before was stored late", 4)
		time.Sleep(gatherTime)
		put(5, func(r *records.Report) { r.Phase = records.PhaseStopped })
		if o.Stored(db0, tok(5), 5) {
			t.Fatal("an end that was not sent yet was taken for stored")
		}
		want("an end goes at once", 5)
		if o.Stored(db0, tok(5), 4) {
			t.Fatal("an end was taken for stored by the word on an older report")
		}
		if !o.Stored(db0, tok(5), 5) || o.Stored(db0, tok(5), 5) {
			t.Fatal("want the end stored, once")
		}
		o.SendAgain(nil)
		want("what is stored is not told again")
	})
}

func TestReportsAreGatheredWhileOthersAreUnderWayAndASingleOneNever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := NewOutbox(300*time.Millisecond, time.Second, time.Now)
		seq := int64(0)
		ready := func(number int64) {
			seq++
			o.Put(records.Report{ID: db0, Token: tok(number), Seq: seq, Phase: records.PhaseRunning, Ready: true})
		}
		messages := 0
		flush := func() (sent []records.Report, next time.Duration) {
			sent, next = o.Due()
			if len(sent) > 0 {
				messages++
			}
			return sent, next
		}
		for n := range int64(10) { // one after the other, each stored before the next
			ready(n + 1)
			if sent, _ := flush(); len(sent) != 1 {
				t.Fatalf("a single report is not sent at once: %v", sent)
			}
			o.Stored(db0, tok(n+1), seq)
		}
		messages = 0
		for n := range int64(1000) { // a thousand in 20 ms, a message under way for 1
			ready(100 + n)
			flush()
			time.Sleep(20 * time.Microsecond)
			if n%50 == 49 {
				for k := range n + 1 {
					o.Stored(db0, tok(100+k), seq)
				}
			}
		}
		time.Sleep(burstMost)
		flush()
		if messages > 6 {
			t.Errorf("1000 reports took %d messages", messages)
		}
		ready(5000)
		if sent, next := flush(); len(sent) > 0 || next <= 0 || next > burstMost {
			t.Errorf("got %v, %v: want it gathered for at most %v", sent, next, burstMost)
		}
		time.Sleep(burstMost)
		if sent, _ := flush(); len(sent) != 1 {
			t.Errorf("got %v after %v, of a server that does not answer", sent, burstMost)
		}
		ready(5001)
		if sent, next := flush(); len(sent) > 0 || next <= 0 || next > gatherTime {
			t.Errorf("got %v, %v: want it gathered for at most %v", sent, next, gatherTime)
		}
		o.Stored(db0, tok(5000), seq-1)
		if sent, _ := flush(); len(sent) != 1 {
			t.Errorf("got %v after one that was alone was stored", sent)
		}
		o.SendAgain(nil)
		if sent, _ := flush(); len(sent) == 0 {
			t.Error("a new session waits for what the old one sent")
		}
	})
}

// Its server has ordered it, and counts the member as not ready since.
func TestThatALifeIsStoppingWaitsForItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := NewOutbox(300*time.Millisecond, time.Second, time.Now)
		report := records.Report{ID: db0, Token: tok(5), Seq: 1, Phase: records.PhaseRunning, Ready: true}
		put := func(seq int64, phase records.Phase) {
			report.Seq, report.Phase, report.Ready = seq, phase, phase == records.PhaseRunning
			o.Put(report)
		}
		put(1, records.PhaseRunning)
		o.Due()
		o.Stored(db0, tok(5), 1)
		put(2, records.PhaseStopping)
		if sent, next := o.Due(); len(sent) > 0 || next != 300*time.Millisecond {
			t.Fatalf("got %v, %v", sent, next)
		}
		put(3, records.PhaseStopped)
		if sent, _ := o.Due(); !slices.Equal(seqs(sent), []int64{3}) {
			t.Fatalf("got %v, want its end alone, at once", sent)
		}
		put(4, records.PhaseStopping)
		time.Sleep(300 * time.Millisecond)
		if sent, _ := o.Due(); !slices.Equal(seqs(sent), []int64{4}) {
			t.Fatalf("got %v, want it said when the end takes longer", sent)
		}
	})
}
