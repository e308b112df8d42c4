package e2e

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"
)

// TestNothingIsLostThroughTheMatrixOfFaults: three servers on a store of three, four
// hosts, etcd under acknowledged writes, and guarded lives. Its short form has
// three faults, chosen by STEAD_SEED; in a soak, with ZooKeeper beside, all of them follow
// each other by chance until its time is over.
func TestNothingIsLostThroughTheMatrixOfFaults(t *testing.T) {
	length, chance := soakFor(t)
	if length == 0 {
		chance = seeded(t)
	}
	began := time.Now()
	archives := []string{etcdArchive}
	if length > 0 {
		archives = append(archives, zookeeperArchive)
	}
	m := newMatrix(t, 4, chance, archives...)
	m.guards()
	m.database("etcd", "stead.local/etcd:3.4.23")
	if length > 0 {
		m.database("zookeeper", "stead.local/zookeeper:3.8.0")
	}
	m.settle()
	t.Logf("all is up after %v", time.Since(began).Round(time.Millisecond))
	stops := []func(){
		m.hosts[0].startLoad("--endpoints", etcdEndpoints, "--pause", "20ms", "--writers", "1"),
		m.hosts[1].startLoad("--endpoints", etcdEndpoints, "--pause", "20ms", "--writers", "1"),
	}
	if length > 0 {
		stops = append(stops, m.hosts[2].startLoad("--kind", "zookeeper", "--endpoints", zookeeperEndpoints(), "--pause", "20ms"))
	}
	some := []fault{one(chance, append(controlFaults, partFaults...)), one(chance, guardFaults), away}
	counts, end := map[string]int{}, time.Now().Add(length)
	for more := true; more && !t.Failed(); more = time.Now().Before(end) {
		if length > 0 {
			some = everyFault(chance)
		}
		for _, f := range some {
			if t.Failed() || length > 0 && time.Now().After(end) {
				break
			}
			m.strike(f)
			counts[f.what]++
		}
	}
	if length > 0 {
		t.Logf("acts: %v", counts)
	}
	for _, stop := range stops {
		stop()
	}
	m.judge()
}

// seeded is the chance of a short form: the same each time, unless STEAD_SEED says other.
func seeded(t testing.TB) *rand.Rand {
	t.Helper()
	seed := uint64(5)
	if text := os.Getenv("STEAD_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("STEAD_SEED: %v", err)
		}
	}
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

func TestAMemberOnTwoHostsIsSeen(t *testing.T) {
	type look = []map[string][]string // of hosts 0 and 1, in turn
	on0, on1 := map[string][]string{"a-0": {"7"}}, map[string][]string{"a-0": {"9"}}
	none, ended := map[string][]string{}, map[string][]string{"a-0": nil}
	for _, c := range []struct {
		name         string
		first, again look
		want         int
	}{
		{"one host", look{on0, none}, look{on0, none}, 0},
		{"two at once", look{on0, on1}, look{on0, none}, 1},
		{"it moved between the looks", look{on0, none}, look{none, on1}, 0},
		{"it moved within a look", look{on0, on1}, look{none, on1}, 0},
		{"it moved and came back as another process", look{on0, on1}, look{map[string][]string{"a-0": {"8"}}, none}, 0},
		{"its cgroup is left, and empty", look{on0, ended}, look{on0, ended}, 0},
		{"another member", look{on0, map[string][]string{"a-1": {"9"}}}, look{on0, none}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := atOnce(c.first, c.again); len(got) != c.want {
				t.Errorf("got %q; want %d", got, c.want)
			}
		})
	}
}

func one(chance *rand.Rand, faults []fault) fault { return faults[chance.IntN(len(faults))] }

// everyFault is each fault once, in an order by chance.
func everyFault(chance *rand.Rand) (all []fault) {
	for _, some := range [][]fault{controlFaults, guardFaults, partFaults, {away}} {
		all = append(all, some...)
	}
	chance.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}
