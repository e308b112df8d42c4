package agent

import (
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

func seqs(rs []records.Report) (out []int64) {
	for _, r := range rs {
		out = append(out, r.Seq)
	}
	return out
}

func TestReportsAreGatheredUntilStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOutbox(300*time.Millisecond, time.Second)
		put := func(seq int64, change func(*records.Report)) {
			r := records.Report{ID: db0, Token: tok(5), Seq: seq, Phase: records.PhasePreparing}
			if change != nil {
				change(&r)
			}
			o.put(r)
		}
		want := func(what string, want ...int64) {
			t.Helper()
			if due, _ := o.take(); !slices.Equal(seqs(due), want) {
				t.Fatalf("%s: got %v, want %v", what, seqs(due), want)
			}
		}
		put(1, nil)
		want("progress waits")
		put(2, func(r *records.Report) { r.Cause = "ImageMissing" })
		if _, next := o.take(); next != 300*time.Millisecond {
			t.Fatalf("next: got %s", next)
		}
		put(3, func(r *records.Report) { r.Phase, r.Ready = records.PhaseRunning, true })
		want("ready goes at once, in place of what waited", 3)
		want("and only once")
		o.again(nil)
		want("a new session is told again", 3)
		put(4, func(r *records.Report) { r.Phase = records.PhaseRunning })
		put(2, nil)
		if o.stored(db0, tok(5), 3) {
			t.Fatal("a report that is not an end was taken for one")
		}
		want("no longer ready goes at once, also when the one before was stored late", 4)
		put(5, func(r *records.Report) { r.Phase = records.PhaseStopped })
		if o.stored(db0, tok(5), 5) {
			t.Fatal("an end that was not sent yet was taken for stored")
		}
		want("an end goes at once", 5)
		if o.stored(db0, tok(5), 4) {
			t.Fatal("an end was taken for stored by the word on an older report")
		}
		if !o.stored(db0, tok(5), 5) || o.stored(db0, tok(5), 5) {
			t.Fatal("want the end stored, once")
		}
		o.again(nil)
		want("what is stored is not told again")
	})
}

func TestPicturesNeverGoBack(t *testing.T) {
	g := newGallery(t.TempDir(), nil)
	seq := func(rev int64) spec.Sequence { return spec.Sequence{Epoch: 1, Rev: rev} }
	replicas := func() int {
		p, _ := g.find(ref)
		return p.Replicas
	}
	g.put(seq(10), true, []records.Snapshot{picture(10, 3)})
	if got := g.put(seq(9), true, nil); got != nil || replicas() != 3 {
		t.Fatalf("an older full list: changed %v, replicas %d", got, replicas())
	}
	if got := g.put(seq(11), false, []records.Snapshot{picture(9, 5)}); got != nil || replicas() != 3 {
		t.Fatalf("an older picture: changed %v, replicas %d", got, replicas())
	}
	if g.put(seq(12), false, []records.Snapshot{picture(12, 5)}); replicas() != 5 {
		t.Fatalf("a newer picture: replicas %d", replicas())
	}
	if g.put(seq(13), false, []records.Snapshot{{Ref: ref, Sequence: seq(13), Gone: true}}); len(g.all()) != 0 {
		t.Fatalf("a set that is gone: %v", g.all())
	}
}

func TestTheNextAgentKnowsTheHosts(t *testing.T) {
	dir := t.TempDir()
	g := newGallery(dir, nil)
	if g.nodes() != nil {
		t.Fatalf("before they were told: %v", g.nodes())
	}
	want := []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")}
	if got, moved := g.admit([]string{"192.0.2.1", "192.0.2.2"}); !moved || !slices.Equal(got, want) {
		t.Fatalf("got %v, %v", got, moved)
	}
	for _, told := range [][]string{nil, {"192.0.2.1", "192.0.2.2"}} {
		if got, moved := g.admit(told); moved {
			t.Errorf("told %q: moved to %v", told, got)
		}
	}
	must(t, g.save())
	if got := newGallery(dir, nil).nodes(); !slices.Equal(got, want) {
		t.Errorf("the next agent: got %v, want %v", got, want)
	}
}
