package sim

import (
	"maps"
	"slices"
	"strings"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/hooks"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// counted is what the judge knows of who was heard of since the store went back (SAFETY S8).
type counted struct {
	heard map[spec.UID]int64 // the epoch in which a machine last said what it runs
	off   map[spec.UID]int64 // or in which somebody said that it need not
	told  map[spec.UID]bool  // a server that began on this store remembered it
	// unheard are the machines of which no store and no server knew when a life was decided.
	unheard map[life][]spec.UID
}

func newCounted() counted {
	return counted{heard: map[spec.UID]int64{}, off: map[spec.UID]int64{}, told: map[spec.UID]bool{}, unheard: map[life][]spec.UID{}}
}

// count judges what is written while nothing is to be decided: the store is held, or a node
// has to say first what it runs: one of the backup, or one that a server remembers. Then it
// notes who was heard.
func (j *judge) count(v cache.View, b store.Batch) {
	if at := slices.IndexFunc(b.Events, func(e store.Event) bool { return decides(v, e) }); at >= 0 && !j.w.restoring {
		key := b.Events[at].Key
		switch hold := v.Hold(); {
		case hold != nil:
			j.w.fail("count", "%s is written, and the store is held: %s", key, hold.Cause)
		case j.w.recovered:
			j.w.fail("continuity", "%s is written, and nobody has said that the store goes on with the data of one server", key)
		default:
			for _, uid := range j.awaited(v) {
				j.w.fail("count", "%s is written, and %s has not said what it runs since the restore", key, uid)
			}
		}
		if j.w.back && j.w.forgot {
			j.w.beyond("nobody who was heard knew that the store went back")
		}
	}
	for _, e := range b.Events {
		switch kind, _ := store.Kind(e.Key); {
		case e.Delete:
		case kind == store.KindFacts:
			if f, err := store.Decode[records.NodeFacts](e.KV); err == nil {
				j.counted.heard[f.UID] = max(f.Epoch, j.counted.heard[f.UID])
			}
		case kind == store.KindCount:
			c, err := store.Decode[records.Count](e.KV)
			for _, n := range c.Nodes {
				if err == nil && n.Off != "" {
					j.counted.off[n.UID] = c.Epoch
				}
			}
		}
	}
}

// holds judges that the store is held once somebody was heard who knows what it lost.
func (j *judge) holds(who, lost string) {
	if lost != "" && !j.w.held() {
		j.w.fail("continuity", "%s knows more than the store, which is not held: %s", who, lost)
	}
}

// decides: the event begins, ends or forgets a life, or gives up, makes or frees something.
func decides(v cache.View, e store.Event) bool {
	switch kind, _ := store.Kind(e.Key); kind {
	case store.KindMember:
		m, err := store.Decode[records.Member](e.KV)
		if e.Delete || err != nil {
			return true
		}
		old := v.Member(m.ID)
		return old == nil || old.Token != m.Token || old.Goal != m.Goal
	case store.KindVolume:
		vol, err := store.Decode[records.Volume](e.KV)
		old := volumeOf(v, e.Key)
		return e.Delete || err != nil || old == nil || old.Fate != vol.Fate
	case store.KindJobs:
		now, err := store.Decode[hooks.Jobs](e.KV)
		if e.Delete || err != nil || now.Run == nil || now.Run.In == nil {
			return false
		}
		old := cache.JobsOf(v, now.Ref)
		return old == nil || old.Run == nil || old.Run.In == nil || old.Run.ID != now.Run.ID
	case store.KindAddress:
		return true
	}
	return false
}

// awaited are the machines that have to be heard before anything is decided.
func (j *judge) awaited(v cache.View) []spec.UID {
	all := maps.Clone(j.counted.told)
	for _, n := range v.Nodes() {
		all[n.Node.UID] = true
	}
	maps.DeleteFunc(all, func(uid spec.UID, _ bool) bool {
		return max(j.counted.heard[uid], j.counted.off[uid]) >= v.Epoch()
	})
	return slices.Sorted(maps.Keys(all))
}

// remembered notes what a server that begins on a held or restored store knows from its disk.
func (j *judge) remembered(nodes map[spec.NodeName]spec.UID) {
	for _, uid := range nodes {
		j.counted.told[uid] = true
	}
}

// unknown notes, of a life that is decided, of which machines nobody knows at that moment.
func (j *judge) unknown(v cache.View, l life) {
	for _, n := range j.w.nodes {
		if j.counted.heard[n.uid] < v.Epoch() {
			j.counted.unheard[l] = append(j.counted.unheard[l], n.uid)
		}
	}
	for _, stray := range v.UnknownLives(l.id) {
		j.w.fail("strays", "%s gets %s, and %s has said that it runs %s", l.id, l.token, stray.Node, stray.Stray.Token)
	}
}

// beside: a was decided when nobody knew the machine on which b runs, which GUARANTEES says
// is not covered ("a node that nobody remembers").
func (j *judge) beside(a, b life, node spec.UID) bool {
	if !slices.Contains(j.counted.unheard[a], node) {
		return false
	}
	j.w.beyond("a life of " + b.id.MemberName() + " on a node that nobody remembered")
	return true
}

// nobodyKnows is beside for what is decided at this moment.
func (j *judge) nobodyKnows(node spec.UID) bool {
	if j.counted.heard[node] >= j.w.epoch {
		return false
	}
	j.w.beyond("a life on a node that nobody remembers")
	return true
}

// beyond ends a run without a violation: what happens from here on is not promised.
func (w *Cluster) beyond(why string) {
	if w.fault == nil && w.beyondIt == "" {
		w.beyondIt = why
		w.note("the run ends, for this is not promised: %s", why)
		w.count("not promised: " + strings.Fields(why)[0])
	}
}
