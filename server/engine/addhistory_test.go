package engine

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// tale replays what histories told: one sequence a set, never changed once written,
// and no life is replaced or forgotten before its begin and end were told.
type tale struct {
	known  map[string]records.Change   // by set, epoch and number
	last   map[spec.SetRef]int64       // the highest number
	begun  map[string]int              // by identity and token
	left   map[string]int              // the same
	lives  map[string]spec.Token       // by identity, now
	stored map[string][]records.Change // pages by key
	faults []string
}

func newTale() *tale {
	return &tale{
		known: map[string]records.Change{}, last: map[spec.SetRef]int64{}, begun: map[string]int{}, left: map[string]int{},
		lives: map[string]spec.Token{}, stored: map[string][]records.Change{},
	}
}

func (h *tale) fault(rev store.Rev, format string, args ...any) {
	h.faults = append(h.faults, fmt.Sprintf("revision %d: ", rev)+fmt.Sprintf(format, args...))
}

// batch takes the changes of one transaction: first what it tells, then what it does.
func (h *tale) batch(b store.Batch) {
	for _, ev := range b.Events {
		if kind, _ := store.Kind(ev.Key); kind == store.KindHistory && !strings.HasSuffix(ev.Key, store.HistoryBase) {
			h.page(b.Rev, ev)
		}
	}
	for _, ev := range b.Events {
		if kind, rest := store.Kind(ev.Key); kind == store.KindMember {
			h.member(b.Rev, rest, ev)
		}
	}
}

func (h *tale) page(rev store.Rev, ev store.Event) {
	if ev.Delete {
		delete(h.stored, ev.Key)
		return
	}
	p, err := store.Decode[records.HistoryPage](ev.KV)
	if err != nil {
		h.fault(rev, "%v", err)
		return
	}
	if old := h.stored[ev.Key]; len(p.Changes) < len(old) {
		h.fault(rev, "%s lost changes", ev.Key)
	}
	h.stored[ev.Key] = p.Changes
	for _, c := range p.Changes {
		name := fmt.Sprintf("%s %d.%d", p.Ref, c.Epoch, c.Number)
		if old, known := h.known[name]; known {
			if !reflect.DeepEqual(old, c) {
				h.fault(rev, "%s was %+v and is %+v", name, old, c)
			}
			continue
		}
		if c.Number <= h.last[p.Ref] {
			h.fault(rev, "%s comes after number %d", name, h.last[p.Ref])
		}
		h.known[name], h.last[p.Ref] = c, c.Number
		life := fmt.Sprintf("%s/%s/%d %s", p.Ref.Namespace, p.Ref.Name, c.Ordinal, c.Token)
		switch c.Kind {
		case records.ChangeJoined, records.ChangeReturned:
			h.begun[life]++
		case records.ChangeLeft:
			h.left[life]++
		case records.ChangeReady, records.ChangeNotReady:
			if h.begun[life] != 1 || h.left[life] != 0 {
				h.fault(rev, "%s of %s, which began %d times and left %d times", c.Kind, life, h.begun[life], h.left[life])
			}
		}
	}
}

// member checks that a life which is not the identity's any more was told whole.
func (h *tale) member(rev store.Rev, identity string, ev store.Event) {
	old := h.lives[identity]
	delete(h.lives, identity)
	if !ev.Delete {
		m, _ := store.Decode[records.Member](ev.KV)
		h.lives[identity] = m.Token
		if m.Token == old {
			return
		}
	}
	if old.IsZero() {
		return
	}
	life := identity + " " + old.String()
	if h.begun[life] != 1 || h.left[life] != 1 {
		h.fault(rev, "%s went, and was told to begin %d times and to leave %d times", life, h.begun[life], h.left[life])
	}
}

// told lists the set's stored changes as kind, ordinal and reason.
func told(v cache.View) (list []string) {
	for _, c := range records.NewestChanges(v.History(db).Pages, records.ChangeID{}) {
		word := fmt.Sprintf("%s %d", c.Kind, c.Ordinal)
		if c.Ordinal == records.NoOrdinal {
			word = fmt.Sprintf("%s %d", c.Kind, c.Replicas)
		}
		if c.Reason != "" {
			word += " " + c.Reason
		}
		list = append(list, word)
	}
	return list
}

// has: the history tells these, in this order, with others between them.
func has(words ...string) func(cache.View) bool {
	return func(v cache.View) bool {
		at := 0
		for _, w := range told(v) {
			if at < len(words) && w == words[at] {
				at++
			}
		}
		return at == len(words)
	}
}

func TestTheHistoryTellsALifeOfASetInOrder(t *testing.T) {
	inCluster(t, func(c *cluster) {
		_, stop := c.engine("a", c.store)
		c.set(2)
		c.until("both joined", has("Joined 0 Create", "Ready 0", "Joined 1 Create", "Ready 1"))
		c.set(3)
		c.until("a third joined", has("Ready 1", "ReplicasChanged 3", "Joined 2 ScaleUp", "Ready 2"))
		c.set(3, func(s *records.Set) { s.Spec.Template.Spec.Containers[0].Image = "j" })
		c.until("updated", has("UpdateBegan 3", "Left 2 Update", "Returned 2 Update", "Ready 2",
			"Left 0 Update", "Returned 0 Update", "Ready 0", "UpdateEnded 3"))
		stop() // another leader goes on where this one ended
		_, stop = c.engine("b", c.store)
		defer stop()
		c.set(1)
		c.until("scaled down", has("UpdateEnded 3", "ReplicasChanged 1", "Left 2 ScaleDown", "Left 1 ScaleDown"))
		c.set(2)
		c.until("a later second member joins again", has("Left 1 ScaleDown", "ReplicasChanged 2", "Joined 1 Create", "Ready 1"))
		var last int64
		c.cache.Look(func(v cache.View) {
			for i, ch := range records.NewestChanges(v.History(db).Pages, records.ChangeID{}) {
				if ch.Number != int64(i+1) || ch.Epoch != 1 {
					t.Errorf("change %d has the number %d.%d", i+1, ch.Epoch, ch.Number)
				}
				last = ch.Number
			}
		})
		c.set(2, deleting)
		c.until("removed", func(v cache.View) bool {
			h := v.History(db)
			return h.Base != nil && h.Base.Of() == "" && len(h.PageRevs) == 0
		})
		c.set(1, func(s *records.Set) { s.UID, s.Deleting = "u2", false })
		c.until("another set of the name", has("Joined 0 Create", "Ready 0"))
		c.cache.Look(func(v cache.View) {
			if first := records.NewestChanges(v.History(db).Pages, records.ChangeID{})[0]; first.Number <= last {
				t.Errorf("the next set's first change has the number %d; the last set's went on after %d", first.Number, last)
			}
		})
	})
}

func TestTheHistoryIsBoundedAndSmallToWrite(t *testing.T) {
	inCluster(t, func(c *cluster) {
		_, stop := c.engine("a", c.store)
		defer stop()
		for _, n := range []int{100, 0, 100, 0} {
			c.set(n)
			c.until(fmt.Sprint("scaled to ", n), ready(n))
		}
		c.until("told to the end", func(v cache.View) bool { return slices.Contains(told(v)[200:], "Left 0 ScaleToZero") })
		c.cache.Look(func(v cache.View) {
			h := v.History(db)
			all := 0
			for _, p := range h.Pages {
				all += len(p.Changes)
				if len(p.Changes) > 2*pageSize {
					t.Errorf("page %d has %d changes", p.Page, len(p.Changes))
				}
			}
			if n := len(h.Base.Told.Members); n > 100 {
				t.Errorf("the base has a row for %d members, though none is left", n)
			}
			if got := len(records.NewestChanges(h.Pages, records.ChangeID{})); got != records.HistoryWindow || all > 2*records.HistoryWindow {
				t.Errorf("%d of %d changes are shown; want %d, and no more than as many beside", got, all, records.HistoryWindow)
			}
		})
	})
}

// What the number was drawn from is compared: also without the leader's key two
// writers could not give one number twice.
func TestATellingComparesWhatItsNumbersComeFrom(t *testing.T) {
	inCluster(t, func(c *cluster) {
		_, stop := c.engine("a", c.store)
		c.set(1)
		c.until("told", has("Joined 0 Create", "Ready 0"))
		stop()
		c.set(2)
		c.until("seen", func(v cache.View) bool { return v.World(db).Set.Replicas() == 2 })
		c.cache.Look(func(v cache.View) {
			u, begins, ok := historyDecision(v, v.World(db), time.Now(), new(newHistorySeen()))
			h := v.History(db)
			want := []store.Compare{
				store.Seen(store.HistoryBaseKey(db), h.BaseRev), store.Seen(store.HistoryPageKey(db, 0), h.PageRevs[0]),
			}
			if !ok || begins || h.BaseRev == 0 || h.PageRevs[0] == 0 || !slices.Equal(u.If, want) {
				t.Errorf("it compares %+v, want %+v", u.If, want)
			}
		})
	})
}

func TestMoreChangesAtOnceThanAreKeptLeaveAGap(t *testing.T) {
	const n = records.HistoryWindow + 50
	inCluster(t, func(c *cluster) {
		for i := range n {
			c.node.behave(i, "hold")
		}
		_, stop := c.engine("a", c.store)
		defer stop()
		c.set(n, parallel)
		c.until("all told", func(v cache.View) bool {
			h := v.History(db)
			return h.Base != nil && records.LastChange(records.NewestChanges(h.Pages, records.ChangeID{})).Number == n
		})
		for i := range n {
			c.node.behave(i, "")
		}
		c.until("all ready", ready(n))
		c.until("all told once", func(v cache.View) bool {
			return records.LastChange(records.NewestChanges(v.History(db).Pages, records.ChangeID{})).Number == 2*n
		})
		time.Sleep(time.Minute)
		c.cache.Look(func(v cache.View) {
			if got := records.LastChange(records.NewestChanges(v.History(db).Pages, records.ChangeID{})).Number; got != 2*n {
				t.Errorf("the last number is %d, want %d", got, 2*n)
			}
		})
	})
}

func TestAHistoryThatCannotBeReadStartsAgainWithHigherNumbers(t *testing.T) {
	for _, broken := range []string{store.HistoryBaseKey(db), store.HistoryPageKey(db, 0)} {
		t.Run(broken, func(t *testing.T) {
			inCluster(t, func(c *cluster) {
				_, stop := c.engine("a", c.store)
				c.set(2)
				c.until("two joined", has("Joined 0 Create", "Joined 1 Create", "Ready 1"))
				stop()
				c.commit(store.Put(broken, []byte("nonsense")))
				c.garbled = true
				_, stop = c.engine("b", c.store)
				defer stop()
				c.set(3)
				c.until("told anew", has("Joined 0 Create", "Joined 1 Create", "Ready 1", "Joined 2 ScaleUp"))
				c.cache.Look(func(v cache.View) {
					if first := records.NewestChanges(v.History(db).Pages, records.ChangeID{})[0]; first.Number <= 4 && broken == store.HistoryPageKey(db, 0) {
						t.Errorf("it begins with number %d, which was given before", first.Number)
					}
				})
			})
		})
	}
}
