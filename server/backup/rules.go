package backup

import (
	"cmp"
	"slices"
	"time"
)

// Rules say when a backup is made, and which are kept.
type Rules struct {
	// Every is the time between two, at least a minute.
	Every time.Duration
	// Keep is how many are kept, at least 1. MaxAge removes older ones before; 0: no limit.
	Keep   int
	MaxAge time.Duration
}

// Kept is a file in a directory of backups.
type Kept struct {
	Name string
	Size int64
	Manifest
	// Err is what is wrong with the file; nil: nothing that was looked for.
	Err error
}

// whole reports whether the store can be restored from it.
func (k *Kept) whole() bool { return k.Err == nil && k.Held == "" }

// good reports whether, besides, all of it can be read.
func (k *Kept) good() bool { return k.whole() && k.Unreadable == 0 }

// newer compares by the order of the store's states, not by clocks: those of servers differ, and may be wrong.
func newer(a, b Kept) int {
	return cmp.Or(b.At().Compare(a.At()), b.Made.Compare(a.Made), cmp.Compare(a.Name, b.Name))
}

// newest is the newest of a cluster that fits; nil: there is none.
func newest(all []Kept, cluster string, fits func(*Kept) bool) (best *Kept) {
	for i := range all {
		if k := &all[i]; k.Cluster == cluster && fits(k) && (best == nil || newer(*k, *best) < 0) {
			best = k
		}
	}
	return best
}

// Due is how long until the next one is to be made, after last (nil: none); 0: now. A last one from the future is of a
// wrong clock and does not count.
func (r Rules) Due(last *Kept, now time.Time) time.Duration {
	if last == nil || last.Made.After(now) {
		return 0
	}
	return max(0, last.Made.Add(r.Every).Sub(now))
}

// Old are the names of those that go, once made was made and checked. It is not among them, nor is the newest good one, nor
// a file of another cluster or one that cannot be read: these are a person's to judge.
func (r Rules) Old(all []Kept, made string, cluster string, now time.Time) (names []string) {
	all = slices.SortedFunc(slices.Values(all), newer)
	best := newest(all, cluster, (*Kept).good)
	kept := 0
	for i := range all {
		k := &all[i]
		switch {
		case k.Cluster != cluster || k.Err != nil:
		case k.Name == made, k == best:
			kept++
		case kept >= r.Keep, r.MaxAge > 0 && now.Sub(k.Made) > r.MaxAge:
			names = append(names, k.Name)
		default:
			kept++
		}
	}
	return names
}
