package box

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/store/memstore"
)

// scripts is how many seeds run; STEAD_BOX_SEEDS=FROM-TO runs others. A script is
// found again by the name of its subtest, though crashes land where the timing of
// the machine puts them.
const scripts = 24

// seeds are the first and the last.
func seeds(t *testing.T) (from, to uint64) {
	t.Helper()
	asked := os.Getenv("STEAD_BOX_SEEDS")
	if asked == "" {
		return 0, scripts - 1
	}
	if n, err := fmt.Sscanf(asked, "%d-%d", &from, &to); n != 2 {
		t.Fatalf("STEAD_BOX_SEEDS=%q: write FROM-TO: %v", asked, err)
	}
	return from, to
}

// Users act, agents and servers crash at any call, before or after it has its effect;
// the audit looks at every start. In the end the last wish is fulfilled, and every
// identity has what it ever had.
func TestAnyPartMayCrashAtAnyMoment(t *testing.T) {
	t.Parallel()
	from, to := seeds(t)
	var crashes atomic.Int64
	t.Cleanup(func() {
		if !t.Failed() && crashes.Load() < int64(to-from) {
			t.Errorf("only %d crashes in %d scripts: they prove nothing", crashes.Load(), to-from+1)
		}
	})
	for seed := from; seed <= to; seed++ {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T) {
				s := newScript(t, seed)
				defer func() { crashes.Add(s.crashes.Load()) }()
				for range 7 {
					s.fault()
					s.act()
					s.settle()
				}
				s.finish()
			})
		})
	}
}

// script is one seed's cluster and what its user wants of it.
type script struct {
	*cluster
	readers *readers
	rand    *rand.Rand
	set     shape
	there   bool
	owned   map[string]netip.Addr // address of every member there ever was
	volumes map[string]records.VolumeID
	mayGo   map[string]bool // members whose volume some policy let go since they were last seen
	said    []string        // for the log of a test that fails
}

func newScript(t *testing.T, seed uint64) *script {
	s := &script{
		cluster: newCluster(t, inMemory(t), "a", "b", "c"),
		rand:    rand.New(rand.NewPCG(seed, 1)),
		owned:   map[string]netip.Addr{}, volumes: map[string]records.VolumeID{}, mayGo: map[string]bool{},
	}
	s.readers = newReaders(s.cluster)
	s.set = shape{name: "db", replicas: 3, volumes: true, parallel: seed%2 == 1}
	if seed%3 == 0 { // the policy for volumes is edited, too
		s.set.scaled, s.set.deleted, s.set.trash = spec.Retain, spec.Retain, "0s"
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("seed %d, parallel %v:\n%s", seed, s.set.parallel, strings.Join(s.said, "\n"))
		}
	})
	return s
}

func (s *script) say(format string, args ...any) {
	s.said = append(s.said, fmt.Sprintf(format, args...))
}

// node picks one.
func (s *script) node() *node {
	return s.nodes[[]spec.NodeName{"a", "b", "c"}[s.rand.IntN(3)]]
}

// fault prepares one or two crashes.
func (s *script) fault() {
	for range 1 + s.rand.IntN(2) {
		before := s.rand.IntN(2) == 0
		switch kind := s.rand.IntN(10); {
		case kind < 4:
			n, call := s.node(), 1+s.rand.IntN(40)
			s.say("agent of %s crashes at call %d, before its effect %v", n.name, call, before)
			n.crashAt(call, before)
		case kind < 6:
			call := 1 + s.rand.IntN(8)
			s.say("server crashes at commit %d, before its effect %v", call, before)
			s.crashServerAt(call, before)
		case kind < 7:
			n := s.node()
			s.say("agent of %s restarts", n.name)
			n.restart()
		case kind < 8:
			call := 1 + s.rand.IntN(8)
			s.say("server stands still from commit %d until another leads", call)
			s.standStillAt(call)
		case kind < 9:
			s.say("all watches break")
			s.store.(*memstore.Store).Break()
		default:
			id := process(fmt.Sprintf("db-%d", s.rand.IntN(4)))
			s.say("%s exits", id.ID)
			s.nodes["a"].host.Exit(id, runtime.Exit{Code: 1})
			s.nodes["b"].host.Exit(id, runtime.Exit{Code: 1})
			s.nodes["c"].host.Exit(id, runtime.Exit{Code: 1})
		}
	}
}

// standStillAt holds the server from its n-th commit from now on, until another one
// leads; then it goes on beside that, with all that was under way.
func (s *script) standStillAt(n int) {
	old := s.current()
	held := old.link.holdAt(func(store.Txn) bool { n--; return n == 0 })
	s.later(func() {
		select {
		case <-s.ending:
		case <-held:
			next := s.startServer()
			s.leads(next.name)
			old.link.release()
		}
	})
}

// act does what a user may.
func (s *script) act() {
	defer s.letGo()
	replicas := s.rand.IntN(5)
	switch {
	case s.there && s.set.trash != "" && s.rand.IntN(3) == 0:
		policies := []spec.Retention{spec.Retain, spec.Delete}
		s.set.scaled, s.set.deleted = policies[s.rand.IntN(2)], policies[s.rand.IntN(2)]
		s.set.replicas = replicas
		s.say("apply %d, volumes %s when scaled, %s when deleted", replicas, s.set.scaled, s.set.deleted)
		s.apply(s.set)
	case !s.there:
		s.set.replicas = replicas
		s.say("apply %d", replicas)
		s.gone("db") // of the deletion before
		s.apply(s.set)
		s.there = true
	case s.rand.IntN(5) == 0:
		s.say("delete")
		s.delete("db")
		s.there = false
	default:
		s.set.replicas = replicas
		s.say("scale to %d", replicas)
		s.scale("db", replicas)
	}
}

// settle waits, two times of three, until the wish is fulfilled.
func (s *script) settle() {
	if s.rand.IntN(3) == 0 {
		return
	}
	if !s.there {
		s.gone("db")
		return
	}
	s.ready("db", s.set.replicas)
	s.remember()
}

// remember checks what the members own against what they ever owned.
func (s *script) remember() {
	s.t.Helper()
	for _, m := range s.members("db") {
		if was, known := s.owned[m.Name]; known && was != m.Address && !s.mayGo[m.Name] {
			s.t.Errorf("%s has the address %s, had %s", m.Name, m.Address, was)
		}
		s.owned[m.Name] = m.Address
	}
	left := map[string]bool{}
	for _, v := range s.cluster.volumes("db") {
		if v.Fate == records.FateTrashed {
			continue
		}
		name := v.ID.MemberName()
		left[name] = true
		if was, known := s.volumes[name]; known && was != v.UID && !s.mayGo[name] {
			s.t.Errorf("%s has the volume %s, had %s", name, v.UID, was)
		}
		s.volumes[name] = v.UID
		if member(name).Ordinal < s.set.replicas {
			delete(s.mayGo, name) // it is ready with this one
		}
	}
	for name := range s.volumes {
		if left[name] {
			continue
		}
		if !s.mayGo[name] {
			s.t.Errorf("the volume %s of %s is lost", s.volumes[name], name)
		}
		delete(s.volumes, name)
	}
}

// finish ends the faults and checks that the last wish is fulfilled.
func (s *script) finish() {
	s.t.Helper()
	s.say("no more faults")
	for _, n := range s.nodes {
		n.crashAt(0, false) // never
	}
	s.crashServerAt(0, false)
	s.current().link.holdAt(func(store.Txn) bool { return false })
	if !s.there {
		s.gone("db")
		s.set.replicas = 4
		s.apply(s.set)
		s.there = true
	}
	s.ready("db", s.set.replicas)
	s.remember()
	s.until("what was given up is gone, and nothing else", s.tidy)
	s.readers.finish(s.set.replicas)
	if got := s.stopsLeft(); len(got) > 0 {
		s.t.Errorf("told to stop and not gone: %v", got)
	}
	for ordinal := range 5 {
		name := fmt.Sprintf("db-%d", ordinal)
		running := s.audit.running(member(name))
		var want []string
		if ordinal < s.set.replicas {
			m := s.find(name)
			want = []string{fmt.Sprintf("%s %s", m.Node, m.Token)}
		}
		if !slices.Equal(running, want) {
			s.t.Errorf("%s: %v runs, want %v", name, running, want)
		}
	}
	if len(s.audit.starts()) == 0 {
		s.t.Error("nothing was ever started")
	}
}

func (s *script) stopsLeft() (names []string) {
	for _, m := range s.members("db") {
		if m.Goal == records.GoalStop {
			names = append(names, m.Name)
		}
	}
	return names
}
