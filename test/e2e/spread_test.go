package e2e

import (
	"bytes"
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// spread is a database with a host for each member (of a large one: three hosts) and one host more. The first of the hosts has the
// server, and writers: it takes no members, and nothing befalls it.
type spread struct {
	*database
	entry entry
	hosts []*Lab
	told  string // a witness's file: a line for each acknowledged key, with the time
}

// onHosts are the databases that are written to while hosts go away.
var onHosts = append([]entry{
	{set: "etcd", image: "stead.local/etcd:3.4.23", archive: etcdArchive, leader: leaderEtcd,
		whole: func(l *Lab, n int) error { return (&database{Lab: l}).wholeEtcd(n) },
		load:  []string{"--endpoints", endpoints("etcd", 2379)}},
	{set: "zookeeper", image: "stead.local/zookeeper:3.8.0", archive: zookeeperArchive, leader: leaderZooKeeper, whole: wholeZooKeeper,
		load: []string{"--kind", "zookeeper", "--endpoints", endpoints("zookeeper", 2181)}},
}, catalogue...)

// TestADatabaseLosesNothingWhenItsHostsAreDrainedMovedFromCutOffAndPoweredOff: real databases on several hosts, written to from
// another one. In a soak each goes through all acts, and then on by chance until its time is over.
func TestADatabaseLosesNothingWhenItsHostsAreDrainedMovedFromCutOffAndPoweredOff(t *testing.T) {
	length, chance := soakFor(t)
	if length == 0 {
		t.Skip("a piece of make soak")
	}
	for _, e := range onHosts {
		t.Run(e.set, func(t *testing.T) {
			s := e.spread(t)
			acts := []act{
				{"the leader's host is drained", s.drained},
				{"the leader is moved to another host", s.moved},
				{"the leader's host is cut off", s.cutOff},
				{"the leader's host loses its power", s.powerLost},
				{"a follower's host is off for good", s.offForGood},
			}
			if s.size == 3 { // larger ones leave two by two, of which one may have the only other copy
				acts = append(acts, act{"a member leaves while its host is off, and returns", s.leaveOff})
			}
			s.through(acts, length, chance)
		})
	}
}

// slowOnHosts is what counts as hanging here at least: five hosts share this machine.
const slowOnHosts = 10 * time.Minute

// spread starts the hosts and the database, and a witness on each host.
func (e entry) spread(t *testing.T) *spread {
	t.Helper()
	hosts := newHosts(t, 5)
	l := hosts[0]
	for _, h := range hosts {
		h.slow = max(e.slow, slowOnHosts)
	}
	s := &spread{entry: e, hosts: hosts, told: l.path("told.log"), database: &database{Lab: l, set: e.set, image: e.image, load: e.load,
		size: cmp.Or(e.size, 3), whole: func(n int) error { return e.whole(l, n) }, heard: l.path("witness.log")}}
	l.startServer("--listen", api)
	letIn(hosts)
	for i, h := range hosts {
		h.start("witness", toolBinary, "witness", "--file", s.heard)
		if i > 0 {
			h.boot = h.path("boot-id")
			s.newBoot(h)
		}
	}
	connect(hosts)
	l.stead("node", "cordon", l.nodeName())
	archives := []string{cmp.Or(e.archive, l.debImageOf(e.list)), l.toolArchive()}
	if e.onEtcd {
		archives = append(archives, etcdArchive)
	}
	s.loadImages(archives)
	watchForTwo(t, hosts)
	if e.onEtcd {
		l.stead("apply", "-f", "../../examples/etcd/etcd.yaml", "--wait", "--timeout", s.patience())
	}
	s.applyAs()
	s.waitWhole(s.size)
	return s
}

// debImageOf is debImage, or nothing of no list.
func (l *Lab) debImageOf(list string) string {
	if list == "" {
		return ""
	}
	return l.debImage(list)
}

// loadImages loads them onto the hosts that take members.
func (s *spread) loadImages(archives []string) {
	s.t.Helper()
	var wg sync.WaitGroup
	for _, h := range s.hosts[1:] {
		wg.Go(func() {
			for _, a := range archives {
				if out, err := s.trySteadFor(s.slow, "image", "load", a, "--node", h.nodeName()); err != nil {
					s.t.Errorf("image load %s: %v %s", a, err, out)
				}
			}
		})
	}
	wg.Wait()
}

// applyAs applies the next variant, with changes: old and new text in turn.
func (s *spread) applyAs(changes ...string) {
	s.t.Helper()
	text := s.variant(s.edit(), s.image)
	for pair := range slices.Chunk(changes, 2) {
		if strings.Count(text, pair[0]) != 1 {
			s.t.Fatalf("the manifest of %s has %q not once", s.set, pair[0])
		}
		text = strings.Replace(text, pair[0], pair[1], 1)
	}
	s.apply(s.set, text, "--wait", "--timeout", s.patience())
}

// newBoot gives a host another boot id.
func (s *spread) newBoot(h *Lab) {
	s.t.Helper()
	id := fmt.Sprintf("00000000-0000-4000-8000-%012x\n", rand.Uint64N(1<<48))
	if err := os.WriteFile(h.boot, []byte(id), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// through does each act once and then others by chance, and at last one with lives that end by themselves. Of each it says how many keys
// were acknowledged, and for how long none was.
func (s *spread) through(acts []act, length time.Duration, chance *rand.Rand) {
	s.t.Helper()
	s.start("told", toolBinary, "witness", "--stamp", "--listen", "127.0.0.1:7778", "--file", s.told)
	stop := s.startLoad(append([]string{"--tell", "127.0.0.1:7778", "--pause", "10ms"}, s.load...)...)
	end, counts := time.Now().Add(length), map[string]int{}
	do := func(a act) {
		s.goesOn()
		began, mark := time.Now(), s.mark()
		s.t.Log(began.UTC().Format(time.TimeOnly), a.what)
		a.do()
		s.settle()
		counts[a.what]++
		n, gap := s.acked(mark)
		s.t.Logf("acts: %s: %v, acknowledged %d, nothing for %.1f s at most", a.what, time.Since(began).Round(time.Second), n, gap.Seconds())
	}
	for i := 0; !s.t.Failed() && (i < len(acts) || time.Now().Before(end)); i++ {
		if i < len(acts) {
			do(acts[i])
		} else {
			do(acts[chance.IntN(len(acts))])
		}
	}
	if !s.t.Failed() {
		do(act{"lives end by themselves on the leader's host, which is cut off", s.lapse})
	}
	stop()
	s.t.Logf("acts: %v", counts)
}

// settle waits until all hosts are there, and the database is whole and written to; and looks that no two lives were heard.
func (s *spread) settle() {
	s.t.Helper()
	s.eventually(time.Minute, "all nodes are connected", func() error {
		out, err := s.trySteadFor(time.Minute, "get", "nodes")
		if err != nil || strings.Count(out, " Ready") != len(s.hosts) {
			return fmt.Errorf("%v: %s", err, out)
		}
		return nil
	})
	for _, name := range s.names() {
		s.waitReady(name, nil)
	}
	s.waitWhole(s.size)
	s.goesOn()
	s.assertOneLife(s.heard, s.names()[:s.size]...)
}

// names are all members: of the database, and of the set that it needs.
func (s *spread) names() (all []string) {
	for i := range s.size {
		all = append(all, s.name(i))
	}
	if s.entry.onEtcd {
		all = append(all, "etcd-0", "etcd-1", "etcd-2")
	}
	return all
}

// mark is a place in what the witness was told: all lines before it are whole.
func (s *spread) mark() int64 {
	st, err := os.Stat(s.told)
	if err != nil {
		return 0
	}
	return st.Size()
}

// since calls f with each line told after mark: when, on the machine's clock since boot, and the key.
func (s *spread) since(mark int64, f func(at time.Duration, key string)) {
	s.t.Helper()
	text, err := os.ReadFile(s.told)
	if err != nil {
		return // nothing was told yet
	}
	for line := range bytes.Lines(text[mark:]) {
		stamp, key, whole := strings.Cut(strings.TrimSuffix(string(line), "\n"), " ")
		if at, err := strconv.ParseInt(stamp, 10, 64); err == nil && whole && line[len(line)-1] == '\n' {
			f(time.Duration(at), key)
		}
	}
}

// acked are how many keys were acknowledged since, and the longest time between two.
func (s *spread) acked(mark int64) (n int, gap time.Duration) {
	s.t.Helper()
	var last time.Duration
	s.since(mark, func(at time.Duration, _ string) {
		n++
		if last > 0 {
			gap = max(gap, at-last)
		}
		last = at
	})
	return n, gap
}

// inARow is how many keys of one writer, one after the other, are to be acknowledged until writes count as going on: a key that fails is not tried
// again, and of many keys some go to each part of the database.
const inARow = 30

// someKeys are as many as are to be acknowledged while others are not, each of which takes a writer two seconds.
const someKeys = 5

// goesOn waits until writes that began later than now are acknowledged, without an error between.
func (s *spread) goesOn() { s.writtenTo(false) }

// goesOnWithout waits for that while a host is away; of a database that has too few copies then of some of the keys, for the others.
func (s *spread) goesOnWithout() { s.writtenTo(s.entry.shards) }

func (s *spread) writtenTo(inPart bool) {
	s.t.Helper()
	mark := s.mark()
	s.eventually(time.Minute, s.set+" is written to", func() error {
		last, row := map[string]int{}, map[string]int{}
		var most, all int
		s.since(mark, func(_ time.Duration, key string) {
			at := strings.LastIndexByte(key, '/')
			n, _ := strconv.Atoi(key[at+1:])
			if n != last[key[:at]]+1 {
				row[key[:at]] = 0
			}
			last[key[:at]] = n
			row[key[:at]]++
			most = max(most, row[key[:at]])
			all++
		})
		if most <= inARow && (!inPart || all <= someKeys) {
			return fmt.Errorf("%d keys, %d of them in a row", all, most)
		}
		return nil
	})
}
