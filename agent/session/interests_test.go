package session

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// What a host asks for is bounded: the set that was not asked for the longest is given up (SAFETY S21).
func TestAHostAsksForABoundedNumberOfSets(t *testing.T) {
	now := time.Duration(0)
	cache := OpenSnapshots(Tmpfs(t.TempDir()), slog.New(slog.DiscardHandler))
	i := NewInterests(cache, func() time.Duration { return now }, func() {})
	name := func(n int) spec.SetRef {
		return spec.SetRef{Namespace: "default", Name: spec.SetName("s" + string(rune('a'+n/26/26)) + string(rune('a'+n/26%26)) + string(rune('a'+n%26)))}
	}
	for n := range maxInterests {
		now += time.Millisecond
		i.Asked(name(n))
	}
	i.Asked(name(0))
	for n := range 5 {
		now += time.Millisecond
		i.Asked(name(maxInterests + n))
	}
	asked := map[spec.SetRef]bool{}
	for _, s := range i.all().GetSets() {
		asked[spec.SetRef{Namespace: spec.Namespace(s.GetNamespace()), Name: spec.SetName(s.GetName())}] = true
	}
	if len(asked) != maxInterests || !asked[name(0)] || asked[name(1)] || asked[name(5)] || !asked[name(6)] || !asked[name(maxInterests+4)] {
		t.Errorf("%d sets are asked for", len(asked))
	}
	if i.changed() != nil {
		t.Error("what was said is said again")
	}
}

// What members read of their set, they do not read of one that is known in brief.
func TestASetInBriefIsNotShownToMembers(t *testing.T) {
	c := OpenSnapshots(Tmpfs(t.TempDir()), slog.New(slog.DiscardHandler))
	full := picture(10, 3)
	c.Put(spec.Sequence{Epoch: 1, Rev: 10}, true, []records.Snapshot{full.InBrief()})
	if _, ok := c.Find(ref); ok || len(c.All()) != 1 {
		t.Errorf("found: %v, of %d", ok, len(c.All()))
	}
}
