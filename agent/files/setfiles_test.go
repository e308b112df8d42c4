package files

import (
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

func TestSetJSONIsTheSnapshotAndNeverGoesBack(t *testing.T) {
	r := newSetRig(t)
	r.known, r.until = r.snapshot(1, 10, 3), 90*time.Second+129*time.Millisecond
	r.known.Bootstrapped, r.known.Told = true, records.ChangeID{Epoch: 1, Number: 7}
	r.known.Peers = []records.Peer{
		{Name: "db-2", Ordinal: 2, Volumes: records.VolumesNew},
		{Name: "db-0", Ordinal: 0, FQDN: "db-0.x", Address: netip.MustParseAddr("10.88.0.2"), Ready: true},
	}
	r.history = []records.Change{event(1, 6), event(1, 7)}
	r.follow(2)
	p := r.place(2)
	first := read(t, p.Stead, SetFile)
	equal(t, "set.json", first, `{"set":"db","replicas":3,"initialReplicas":2,"initialOrdinals":[0,2],"generation":3,"bootstrapped":true,"sequence":{"epoch":1,"rev":10},"event":{"epoch":1,"number":7},"confirmedUntil":90.12,"namespace":"prod",`+
		`"peers":[{"name":"db-0","ordinal":0,"fqdn":"db-0.x","address":"10.88.0.2","ready":true},{"name":"db-1","ordinal":1,"fqdn":"","address":"","ready":false,"volumes":"used"},{"name":"db-2","ordinal":2,"fqdn":"","address":"","ready":false,"volumes":"new"}]}`+"\n")
	show := func() string { r.moved(); r.settle(); return read(t, p.Stead, SetFile) }
	older := r.snapshot(1, 9, 5)
	newest := r.known
	r.known, r.until = older, time.Hour
	equal(t, "after an older snapshot", show(), first)
	r.known = newest
	equal(t, "after the same snapshot, confirmed again", show(), first)
	r.restart() // of an agent that was not answered yet
	r.known, r.until = r.snapshot(2, 1, 5), 0
	r.follow(2)
	got := read(t, p.Stead, SetFile)
	if !strings.Contains(got, `"confirmedUntil":90.12,`) || !strings.Contains(got, `"event":{"epoch":1,"number":7}`) || !strings.Contains(got, `"replicas":5`) {
		t.Errorf("a later epoch: got %s", got)
	}
	equal(t, "bootstrapped after a snapshot that does not say so", read(t, p.Stead, BootstrappedFile), "1\n")
}

func TestEventsAndConfirmedNeverGoBack(t *testing.T) {
	r := newSetRig(t)
	r.known = r.snapshot(1, 1, 3)
	r.follow(2)
	p := r.place(2)
	absent := func(name string) {
		t.Helper()
		if _, err := os.Stat(filepath.Join(p.Stead, name)); !os.IsNotExist(err) {
			t.Errorf("%s: got %v, want it absent", name, err)
		}
	}
	absent(EventsFile)
	absent(ConfirmedFile)
	r.history = []records.Change{event(1, 2), event(1, 3)}
	r.moved()
	r.settle()
	first := read(t, p.Stead, EventsFile)
	if want, err := Events(r.history); err != nil || first != string(want) {
		t.Errorf("got %s, want %s", first, want)
	}
	for _, older := range [][]records.Change{{event(1, 2)}, nil} {
		r.history = older
		r.moved()
		r.settle()
		equal(t, "events after an older history", read(t, p.Stead, EventsFile), first)
		r.restart()
		r.follow(2)
		equal(t, "and after a restart", read(t, p.Stead, EventsFile), first)
	}
	r.history = []records.Change{event(2, 1)}
	r.until = 100 * time.Second
	r.moved()
	r.settle()
	if got := read(t, p.Stead, EventsFile); !strings.HasPrefix(got, `{"epoch":2,"number":1,`) {
		t.Errorf("a later epoch was ignored: %s", got)
	}
	r.moved()
	r.settle()
	equal(t, "confirmed", read(t, p.Stead, ConfirmedFile), "100.00\n")
	r.until = 99 * time.Second
	r.restart()
	r.follow(2)
	r.moved()
	r.settle()
	equal(t, "confirmed", read(t, p.Stead, ConfirmedFile), "100.00\n")
	r.until = 101*time.Second + 59*time.Millisecond
	r.moved()
	r.settle()
	equal(t, "confirmed", read(t, p.Stead, ConfirmedFile), "101.05\n")
	r.sets.Leave(life().Member.ID)
	must(t, Clean(p))
	r.until = 200 * time.Second
	r.moved()
	r.settle()
	absent("")
	if left, err := filepath.Glob(filepath.Join(r.dir, "shown", "*", "*", "*")); err != nil || len(left) > 0 {
		t.Errorf("left of a set that nobody follows: %q, %v", left, err)
	}
}

// The definition is what would be written for each member alone: the newest snapshot and
// history that are known; and of what a member was shown nothing goes back, whatever is known
// and whenever the agent is restarted.
func TestEveryMemberIsShownWhatItWouldBeShownAlone(t *testing.T) {
	for seed := range uint64(30) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		r := newSetRig(t)
		rev, number := int64(1), int64(0)
		r.known = r.snapshot(1, rev, 3)
		type state struct {
			known   records.Snapshot
			history []records.Change
		}
		states := []state{{r.known, nil}}
		is := func(s state) { r.known, r.history = s.known, s.history }
		follows, shown := map[int]bool{}, map[int]SetHead{}
		untils := map[int]Uptime{}
		check := func(what string) {
			for n := range follows {
				head, until := r.disk.Head(r.place(n))
				had := shown[n]
				if head.Sequence.Compare(had.Sequence) < 0 || head.Event.Compare(had.Event) < 0 || head.Last.Compare(had.Last) < 0 ||
					head.ConfirmedUntil < had.ConfirmedUntil || until < untils[n] || head.Event.Compare(head.Last) > 0 {
					t.Fatalf("seed %d, %s: db-%d is shown %+v until %s after %+v until %s", seed, what, n, head, until, had, untils[n])
				}
				shown[n], untils[n] = head, until
			}
		}
		for range 150 {
			what := "a turn"
			switch n := rnd.IntN(4); rnd.IntN(9) {
			case 0:
				what = "it follows"
				follows[n] = true
				r.follow(n)
			case 1:
				what = "it leaves"
				r.sets.Leave(r.life(n).Member.ID)
				must(t, Clean(r.place(n)))
				delete(follows, n)
				delete(shown, n)
				delete(untils, n)
			case 2:
				what = "it is repaired"
				if follows[n] {
					r.unanswered = false
					is(states[len(states)-1])
					r.moved()
					r.settle()
					_ = os.Remove(filepath.Join(r.place(n).Stead, []string{SetFile, SetEnvFile, EventsFile, ConfirmedFile, BootstrappedFile}[rnd.IntN(5)]))
					r.follow(n)
				}
			case 3, 4:
				what = "the set changes"
				rev++
				is(states[len(states)-1])
				r.known = r.snapshot(1, rev, 1+rnd.IntN(5))
				r.known.Bootstrapped = rnd.IntN(3) == 0
				number++
				if rnd.IntN(2) == 0 {
					r.history = append(r.history, event(1, number))
				}
				r.known.Told = records.ChangeID{Epoch: 1, Number: number}
				states = append(states, state{r.known, r.history})
				r.moved()
			case 5:
				what = "it is confirmed"
				r.unanswered = false
				r.until += time.Duration(rnd.IntN(5000)) * time.Millisecond
				r.moved()
			case 6:
				what = "a restart" // of which the last moments were not kept
				r.restart()
				r.unanswered = true
				r.known = states[max(0, len(states)-1-rnd.IntN(3))].known
				r.history = states[max(0, len(states)-1-rnd.IntN(3))].history
				for n := range follows {
					r.follow(n)
				}
			case 7:
				r.now = r.now.Add(time.Duration(rnd.IntN(1000)) * time.Millisecond)
				r.sets.Turn()
			case 8:
				what = "a second"
				r.unanswered = false
				is(states[len(states)-1])
				r.moved()
				r.settle()
				r.moved()
				r.settle()
				r.wantAlone(follows)
			}
			check(what)
		}
	}
}

// wantAlone compares what members are shown with what is known.
func (r *setRig) wantAlone(follows map[int]bool) {
	r.t.Helper()
	var first os.FileInfo
	for n := range follows {
		p := r.place(n)
		head, until := r.disk.Head(p)
		want := r.known
		want.Told = head.Event
		want.Bootstrapped = strings.Contains(read(r.t, p.Stead, SetFile), `"bootstrapped":true`)
		if _, err := os.Stat(filepath.Join(p.Stead, BootstrappedFile)); want.Bootstrapped && err != nil || r.known.Bootstrapped && !want.Bootstrapped {
			r.t.Fatalf("db-%d: its set is bootstrapped: %v, in set.json %v, %v", n, r.known.Bootstrapped, want.Bootstrapped, err)
		}
		doc, err := Set(&want, head.ConfirmedUntil)
		must(r.t, err)
		if got := read(r.t, p.Stead, SetFile); got != string(doc) {
			r.t.Fatalf("db-%d is shown\n%s, want\n%s", n, got, doc)
		}
		equal(r.t, "set.env", read(r.t, p.Stead, SetEnvFile), string(wholeEnv(&want)))
		told := min(r.known.Told.Number, records.LastChange(r.history).Number)
		if head.Event.Number < told || until != Uptime(r.until).truncated() {
			r.t.Fatalf("db-%d is shown event %d until %s, want %d until %s", n, head.Event.Number, until, told, Uptime(r.until))
		}
		if len(r.history) > 0 {
			doc, err := Events(r.history)
			must(r.t, err)
			equal(r.t, "events", read(r.t, p.Stead, EventsFile), string(doc))
		}
		at, err := os.Stat(filepath.Join(p.Stead, SetFile))
		must(r.t, err)
		if first == nil {
			first = at
		}
		if !os.SameFile(first, at) {
			r.t.Fatalf("db-%d has a copy", n)
		}
	}
}

// truncated is u as it is written.
func (u Uptime) truncated() Uptime { return u / hundredth * hundredth }

func TestWhatMembersAreShownIsWrittenOnceASet(t *testing.T) {
	for _, members := range []int{10, 100} {
		r := newSetRig(t)
		r.known, r.history, r.until = r.snapshot(1, 1, members), []records.Change{event(1, 1)}, time.Second
		for n := range members {
			r.follow(n)
		}
		equal(t, "written while they started", r.disk.writes, 4)
		r.settle()
		r.disk.writes, r.disk.links = 0, 0
		for rev := range int64(50) { // more than one a second
			r.known = r.snapshot(1, 2+rev, members)
			r.history = append(r.history, event(1, 2+rev))
			r.moved()
			r.sets.Turn()
			r.now = r.now.Add(10 * time.Millisecond)
		}
		equal(t, "written in half a second: at once", r.disk.writes, 3)
		equal(t, "linked", r.disk.links, 3*members)
		r.settle()
		equal(t, "written in a second", r.disk.writes, 6)
		equal(t, "linked", r.disk.links, 6*members)
		for n := range members { // a repair that finds all as it was
			r.follow(n)
		}
		equal(t, "after a repair", r.disk.writes+r.disk.links, 6+6*members)
	}
}

func TestASetOfADifferentUIDIsAnother(t *testing.T) {
	r := newSetRig(t)
	r.known = r.snapshot(1, 1, 3)
	old, fresh := r.life(0), r.life(2)
	old.Bootstrapped = true
	fresh.Member.SetUID = "u2"
	for _, l := range []*records.Life{old, fresh} {
		must(t, os.MkdirAll(At(r.dir, l.Member.ID).Stead, 0o755))
		must(t, r.sets.Follow(l))
	}
	r.moved()
	r.settle()
	if !strings.Contains(read(t, r.place(0).Stead, SetFile), `"bootstrapped":true`) || strings.Contains(read(t, r.place(2).Stead, SetFile), `"bootstrapped":true`) {
		t.Error("what a life of an earlier set of the name knows is shown to one of this set")
	}
}

func TestWhatCannotBeWrittenIsTriedAgainAndNotConfirmed(t *testing.T) {
	r := newSetRig(t)
	r.known, r.until = r.snapshot(1, 1, 3), time.Second
	r.follow(2)
	r.disk.fails = unix.ENOSPC
	r.known, r.until = r.snapshot(1, 2, 4), 2*time.Second
	r.moved()
	r.settle()
	if got := read(t, r.place(2).Stead, ConfirmedFile); got != "1.00\n" {
		t.Errorf("confirmed: %q", got)
	}
	r.disk.fails = nil
	r.settle()
	r.settle()
	if set, got := read(t, r.place(2).Stead, SetFile), read(t, r.place(2).Stead, ConfirmedFile); !strings.Contains(set, `"replicas":4`) || got != "2.00\n" {
		t.Errorf("got %s, confirmed %q", set, got)
	}
}

func TestAMemberIsNotConfirmedByAnAgentThatKnowsLess(t *testing.T) {
	r := newSetRig(t)
	r.known, r.until = r.snapshot(1, 2, 3), time.Second
	r.follow(2)
	r.known, r.until = r.snapshot(1, 1, 3), 2*time.Second
	r.restart()
	r.follow(2)
	r.moved()
	r.settle()
	equal(t, "confirmed", read(t, r.place(2).Stead, ConfirmedFile), "1.00\n")
	r.known = r.snapshot(1, 3, 3)
	r.moved()
	r.settle()
	equal(t, "confirmed", read(t, r.place(2).Stead, ConfirmedFile), "2.00\n")
}

func TestWhoWaitsForASnapshotIsWokenOnce(t *testing.T) {
	r := newSetRig(t)
	woken := 0
	id := life().Member.ID
	known := r.sets.IsKnown(id, func() { woken++ })
	if again := r.sets.IsKnown(id, func() { woken++ }); known || again {
		t.Fatal("known before it came")
	}
	r.sets.Changed(func(ref spec.SetRef) bool { return ref.Name != "db" })
	equal(t, "woken by another set", woken, 0)
	r.known = r.snapshot(1, 1, 1)
	r.moved()
	r.moved()
	equal(t, "woken", woken, 1)
	if !r.sets.IsKnown(id, func() { woken++ }) {
		t.Error("not known after it came")
	}
}
