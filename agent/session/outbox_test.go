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
		if o.Stored(db0, tok(5), 3) {
			t.Fatal("a report that is not an end was taken for one")
		}
		want("no longer ready goes at once, also when the one before was stored late", 4)
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
