package engine

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// pages are those of a set with so many changes each, in a row from number 1.
func pages(uid spec.UID, changes ...int) (list []*records.HistoryPage) {
	number := int64(0)
	for i, n := range changes {
		p := &records.HistoryPage{Ref: db, SetUID: uid, Page: int64(i)}
		for range n {
			number++
			p.Changes = append(p.Changes, records.Change{Kind: records.ChangeReplicas, Ordinal: records.NoOrdinal, Number: number, Replicas: int(number)})
		}
		list = append(list, p)
	}
	return list
}

// storedPages is a history of these pages, and of those that cannot be read.
func storedPages(base *records.HistoryBase, list []*records.HistoryPage, unreadable ...int64) cache.History {
	h := cache.History{Base: base, Pages: list, PageRevs: map[int64]store.Rev{}}
	if base != nil {
		h.BaseRev = 7
	}
	for _, p := range list {
		h.PageRevs[p.Page] = 8
	}
	for _, p := range unreadable {
		h.PageRevs[p] = 9
	}
	return h
}

func TestAHistoryContinuesOrStartsWithHigherNumbers(t *testing.T) {
	one := int32(1)
	w := plan.World{Rev: 1000, Set: &records.Set{Ref: db, UID: "u1", Spec: spec.SetSpec{Replicas: &one}}, TemplateHash: "h1"}
	base := func(uid spec.UID, open, next int64) *records.HistoryBase {
		return &records.HistoryBase{Ref: db, UID: uid, Open: open, Next: next, Told: records.Recorded{Replicas: 5, Update: "h0"}}
	}
	earlier := func(b *records.HistoryBase) *records.HistoryBase {
		b.UID, b.SetUID = "", b.UID
		return b
	}
	unreadable := storedPages(nil, nil)
	unreadable.BaseRev = 7
	const far = 2 * records.HistoryWindow
	for _, c := range []struct {
		name     string
		h        cache.History
		next     int64
		open     int64 // -1: none
		replicas int   // as told; 1: as the set has them, for it is begun anew
	}{
		{"there is none", storedPages(nil, nil), 1, -1, 1},
		{"it goes on", storedPages(base("u1", 0, 1), pages("u1", 3)), 4, 0, 3},
		{"it goes on after earlier pages", storedPages(base("u1", 1, 4), pages("u1", 3, 2)), 6, 1, 5},
		{"it goes on on several pages", storedPages(base("u1", 1, 4), pages("u1", 3, 2, 2)), 8, 2, 7},
		{"an earlier version wrote it", storedPages(earlier(base("u1", 1, 4)), pages("u1", 3, 2)), 6, 1, 5},
		{"an earlier version wrote its base, and this one more", storedPages(earlier(base("u1", 1, 4)), pages("u1", 3, 2, 2)), 8, 2, 7},
		{"a page between is gone", storedPages(base("u1", 0, 1), slices.Delete(pages("u1", 3, 2, 2), 1, 2)), 1 + far, -1, 1},
		{"the first page is gone", storedPages(base("u1", 0, 1), pages("u1", 3, 2)[1:]), 1 + far, -1, 1},
		{"a later page cannot be read", storedPages(base("u1", 0, 1), pages("u1", 3), 1), 1 + far, -1, 1},
		{"its page is gone", storedPages(base("u1", 0, 4), nil), 4, -1, 5},
		{"its base is gone", storedPages(nil, pages("u1", 3)), 1000, -1, 1},
		{"its base is gone, and it was long", storedPages(nil, pages("u1", 2000)), 2001, -1, 1},
		{"its base cannot be read", unreadable, 1000, -1, 1},
		{"its page cannot be read", storedPages(base("u1", 0, 4), nil, 0), 4 + far, -1, 1},
		{"its page cannot be read, an earlier one can", storedPages(base("u1", 1, 4), pages("u1", 3), 1), 4 + far, -1, 1},
		{"its page is another set's", storedPages(base("u1", 0, 4), pages("u0", 3)), 4 + far, -1, 1},
		{"an earlier set's was closed", storedPages(base("", 1, 9), nil), 9, -1, 1},
		{"an earlier set's was not closed", storedPages(base("u0", 0, 1), pages("u0", 3)), 4, -1, 1},
	} {
		told, open, next, _ := resume(c.h, w)
		page := int64(-1)
		if open != nil {
			page = open.Page
		}
		if next != c.next || page != c.open || told.Replicas != c.replicas {
			t.Errorf("%s: it goes on with number %d on page %d, and %d replicas were told; want %d, %d and %d", c.name, next, page, told.Replicas, c.next, c.open, c.replicas)
		}
	}
}

// What is followed, page by page, is what is read anew at each step.
func TestAHistoryThatIsFollowedIsThatReadAnew(t *testing.T) {
	one := int32(1)
	w := plan.World{Rev: 1000, Set: &records.Set{Ref: db, UID: "u1", Spec: spec.SetSpec{Replicas: &one}}, TemplateHash: "h1"}
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 5))
		var list []*records.HistoryPage
		var base *records.HistoryBase
		var r recordedHistory
		rev, added := store.Rev(1), 0
		for step := range 300 {
			h := storedPages(base, list)
			h.BaseRev = rev
			if random.IntN(40) == 0 {
				h = storedPages(base, list, 1000) // for a while
			}
			followed := r.resumed && r.last != nil
			r.follow(h, w)
			told, last, next, resumed := resume(h, w)
			if !reflect.DeepEqual(r.told, told) || r.last != last || r.next != next || r.resumed != resumed {
				t.Fatalf("seed %d, step %d: followed %+v to %d, read %+v to %d", seed, step, r.told, r.next, told, next)
			}
			change := records.Change{Kind: records.ChangeJoined, Ordinal: random.IntN(9), Number: next, Token: fmt.Sprint(step)}
			switch n := random.IntN(20); {
			case n == 0 || base == nil || last == nil:
				page := &records.HistoryPage{Ref: db, SetUID: "u1", Page: int64(step), Changes: []records.Change{change}}
				base, rev = &records.HistoryBase{Ref: db, UID: "u1", Open: page.Page, Next: next, Told: told}, rev+1
				list = []*records.HistoryPage{page}
			case n == 1:
				other := *last
				other.SetUID = "u0"
				list = append(list[:len(list)-1:len(list)-1], &other)
			case n < 6:
				list = append(slices.Clip(list), &records.HistoryPage{Ref: db, SetUID: "u1", Page: last.Page + 1, Changes: []records.Change{change}})
			default:
				more := *last
				more.Changes = append(slices.Clip(more.Changes), change)
				list = append(list[:len(list)-1:len(list)-1], &more)
			}
			if followed {
				added++
			}
		}
		if added < 100 {
			t.Errorf("seed %d: %d times only something was there to follow", seed, added)
		}
	}
}

func TestPagesGoWhenNothingOnThemIsShown(t *testing.T) {
	const w = records.HistoryWindow
	for _, c := range []struct {
		name string
		h    cache.History
		page *records.HistoryPage // that is written
		want string
	}{
		{"all are shown", storedPages(nil, pages("u1", 16, 16)), pages("u1", 16, 16, 16)[2], "[]"},
		{"the window is filled to the last place", storedPages(nil, pages("u1", 16, w-16)), pages("u1", 16, w-16, 16)[2], "[0]"},
		{"one has a place still", storedPages(nil, pages("u1", 16, w-17)), pages("u1", 16, w-17, 16)[2], "[]"},
		{"the page itself is written once more", storedPages(nil, pages("u1", 16, w-16)), pages("u1", 16, w-16)[1], "[]"},
		{"one cannot be read", storedPages(nil, pages("u1", 16), 5), pages("u1", 16, 1)[1], "[5]"},
		{"one is of an earlier set", storedPages(nil, pages("u0", 16)), pages("u1", 16, 1)[1], "[0]"},
	} {
		if got := fmt.Sprint(outOfWindow(c.h, *c.page)); got != c.want {
			t.Errorf("%s: pages %s go, want %s", c.name, got, c.want)
		}
	}
}

// lives are those of the set db, from ordinal 0, with these tokens on these nodes.
func lives(token int64, nodes ...spec.NodeName) (ops []store.Op) {
	for i, node := range nodes {
		ops = append(ops, store.Put(store.MemberKey(member(i)), store.Encode(records.Member{
			ID: member(i), Token: spec.Token{Epoch: 1, Number: token}, Goal: records.GoalRun, Node: node, NodeUID: "x", Bound: time.Second,
		})))
	}
	return ops
}

// tells has what became of the set written, and returns it.
func (d *manualTerm) tells() (u decision) {
	d.t.Helper()
	d.cache.Look(func(v cache.View) {
		d.l.takeChanges(v)
		w := v.World(db)
		w.Nodes = d.l.withSilence(v, w.Nodes, d.now)
		u, _, _ = historyDecision(v, w, d.now, &d.mem.history)
	})
	d.commit(u.Then...)
	d.follow()
	return u
}

// As many changes as are shown need no page before them.
func TestChangesThatFillTheWindowStartAPage(t *testing.T) {
	for n, want := range map[int][]int64{records.HistoryWindow - 2: {0}, records.HistoryWindow: {1}} {
		d := newManualTerm(t)
		d.write(append(lives(5, "n1"), d.set("db", 1))...)
		d.tells()
		for ops := range slices.Chunk(lives(9, make([]spec.NodeName, n)...)[1:], 100) {
			d.write(ops...)
		}
		d.write(store.Del(store.MemberKey(member(0)))) // it left, which is the change that makes them n
		d.tells()
		d.cache.Look(func(v cache.View) {
			h := v.History(db)
			var got []int64
			for _, p := range h.Pages {
				got = append(got, p.Page)
			}
			if shown := records.NewestChanges(h.Pages, records.ChangeID{}); !slices.Equal(got, want) || shown[len(shown)-1].Number != int64(n+1) {
				t.Errorf("after %d changes at once the pages are %v to number %d, want %v", n, got, shown[len(shown)-1].Number, want)
			}
		})
	}
}

// TestALifeThatEndedByItsDeadlineIsRecordedWithItsProof: that its node had no session, and no
// other life's node.
func TestALifeThatEndedByItsDeadlineIsRecordedWithItsProof(t *testing.T) {
	proof := func(u decision) (nodes []spec.NodeName) {
		for _, node := range []spec.NodeName{"n1", "n2"} {
			if slices.Contains(u.If, store.Seen(store.SessionKey(node), 0)) {
				nodes = append(nodes, node)
			}
		}
		return nodes
	}
	for _, c := range []struct {
		name string
		then func(d *manualTerm)
		want string
	}{
		{"nothing ended", func(d *manualTerm) {}, "[]"},
		{"its node is lost; that of another with the same token is not", func(d *manualTerm) {
			d.write(store.Del(store.SessionKey("n1")))
			d.tells()
			d.after(time.Hour)
		}, "[n1]"},
		{"it says so", func(d *manualTerm) {
			d.write(store.Put(store.ReportKey(member(0)), store.Encode(records.Report{ID: member(0), Token: spec.Token{Epoch: 1, Number: 5}, Phase: records.PhaseStopped})))
		}, "[]"},
		{"another has its place", func(d *manualTerm) { d.write(lives(9, "n1")...) }, "[]"},
		{"it is gone, and its identity is remembered", func(d *manualTerm) {
			d.write(store.Del(store.MemberKey(member(0))), store.Put(store.IdentityKey(member(0)), store.Encode(records.IdentityRecord{ID: member(0)})))
		}, "[]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newManualTerm(t)
			d.write(append(lives(5, "n1", "n2"), d.set("db", 2),
				store.Put(store.NodeKey("n2"), store.Encode(records.Node{Name: "n2", UID: "x"})),
				store.Put(store.FactsKey("n2"), store.Encode(records.NodeFacts{Name: "n2", UID: "x", Epoch: 1, Guards: true})),
				store.Put(store.SessionKey("n2"), store.Encode(records.Session{Node: "n2", UID: "x"})))...)
			d.tells()
			c.then(d)
			if got := fmt.Sprint(proof(d.tells())); got != c.want {
				t.Errorf("it compares that %s have no session, want %s", got, c.want)
			}
			d.cache.Look(func(v cache.View) {
				if left := slices.ContainsFunc(told(v), func(s string) bool { return len(s) > 4 && s[:4] == "Left" }); left != (c.name != "nothing ended") {
					t.Errorf("told %q", told(v))
				}
			})
		})
	}
}
