package e2e

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// entry is a database of examples/ that is put under faults while it is written to.
type entry struct {
	set   string   // examples/SET/SET.yaml
	list  string   // its image in scripts/images
	image string   // as the manifest names it
	load  []string // flags of the load

	// whole fails until n members belong to the database, as itself says, and each has what it should.
	whole func(l *Lab, n int) error
	// leader is the ordinal of the member that leads: whose loss is seen most.
	leader func(l *Lab) (int, error)
	// size is how many members its manifest has; zero: 3.
	size int
	// follower is a member that does not lead; nil: the one after the leader.
	follower func(l *Lab) (int, error)
	// central: its image needs Maven Central, which not every machine reaches: only a soak runs it.
	central bool
	// slow is what counts as hanging for a database that takes its time; zero: hanging.
	slow time.Duration
	// gave is a file on the disk of a member whose decommission is past the point from which it can just go on; empty: it has no abort.
	gave string
	// onEtcd: it needs the etcd of examples/ beside it.
	onEtcd bool
	// archive is its image where that is of no list.
	archive string
	// shards: each key has two copies only, so that those of which a host had one are not acknowledged while it is away.
	shards bool
	// afterMove is what its README asks for after members have moved to other hosts; nil: nothing.
	afterMove func(l *Lab) error
}

var catalogue = []entry{
	{set: "galera", list: "galera", image: "stead.local/galera:10.11", whole: wholeGalera, leader: leaderGalera,
		load: []string{"--kind", "galera", "--endpoints", endpoints("galera", 3306)}},
	{set: "nats", list: "nats", gave: "left", image: "stead.local/nats:2.14.10", whole: wholeNATS, leader: leaderNATS,
		load: []string{"--kind", "nats", "--endpoints", endpoints("nats", 4222)}},
	{set: "redis", list: "redis", image: "stead.local/redis:7.0.15", whole: wholeRedis, leader: leaderRedis,
		load: []string{"--kind", "redis", "--endpoints", "redis-leader.default.svc.cluster.local:6379"}},
	{set: "redis-cluster", list: "redis", image: "stead.local/redis:7.0.15", whole: wholeRedisCluster, leader: leaderRedisCluster,
		size: 6, shards: true, follower: followerRedisCluster, slow: 15 * time.Minute, afterMove: pairRedisCluster,
		load: []string{"--kind", "redis-cluster", "--endpoints", endpoints("redis-cluster", 6379)}},
	{set: "rabbitmq", list: "rabbitmq", gave: "joining", image: "stead.local/rabbitmq:3.10.8", whole: wholeRabbitMQ, leader: leaderRabbitMQ,
		load: []string{"--kind", "rabbitmq", "--endpoints", endpoints("rabbitmq", 5672)}},
	{set: "postgresql", list: "patroni", image: "stead.local/patroni:3.0.2", whole: wholePostgreSQL, leader: leaderPostgreSQL, onEtcd: true,
		load: []string{"--kind", "postgresql", "--endpoints", endpoints("postgresql", 5432)}},
	{set: "cassandra", list: "cassandra", image: "stead.local/cassandra:5.0.9", whole: wholeCassandra, leader: leaderCassandra, central: true, slow: 15 * time.Minute,
		load: []string{"--kind", "cassandra", "--endpoints", endpoints("cassandra", 9042)}},
	{set: "kafka", list: "kafka", image: "stead.local/kafka:4.4.0", whole: wholeKafka, leader: leaderKafka, central: true, slow: 5 * time.Minute,
		load: []string{"--kind", "kafka", "--endpoints", endpoints("kafka", 9092)}},
}

// endpoints are the first three members of a set in the default namespace, whose service has its name.
func endpoints(set string, port int) string {
	var all []string
	for i := range 3 {
		all = append(all, fmt.Sprintf("%s-%d.%s.default.svc.cluster.local:%d", set, i, set, port))
	}
	return strings.Join(all, ",")
}

func (e entry) begin(t *testing.T) *database {
	t.Helper()
	l := newLab(t)
	l.slow = e.slow
	d := &database{Lab: l, set: e.set, image: e.image, load: e.load, size: cmp.Or(e.size, 3), most: cmp.Or(e.size, 3),
		whole: func(n int) error { return e.whole(l, n) }}
	images := []string{l.debImage(e.list), d.toolArchive()}
	if e.onEtcd {
		images = append(images, etcdArchive)
	}
	d.startAll(images...)
	if e.onEtcd {
		d.stead("apply", "-f", "../../examples/etcd/etcd.yaml", "--wait", "--timeout", d.patience())
	}
	d.heard = d.startWitness()
	d.applyVariant(d.edit(), d.image, "--wait", "--timeout", d.patience())
	d.waitWhole(d.size)
	return d
}

// TestADatabaseLosesNothingUnderFaults: its short form takes one database of the catalogue, chosen by STEAD_SEED,
// through the acts that find most. In a soak each goes through all acts, and then on by chance until its time is over.
func TestADatabaseLosesNothingUnderFaults(t *testing.T) {
	length, chance := soakFor(t)
	chosen := -1
	if length == 0 {
		chosen = seeded(t).IntN(slices.IndexFunc(catalogue, func(e entry) bool { return e.central })) // the last ones
	}
	for i, e := range catalogue {
		if chosen >= 0 && i != chosen {
			continue
		}
		t.Run(e.set, func(t *testing.T) {
			t.Parallel()
			d := e.begin(t)
			acts := []act{
				{"leader killed with its disk empty", func() { d.empty(d.leads(e)) }},
				{"two more members, and back", d.growAndShrink},
				{"rolling update", d.roll},
			}
			if length > 0 {
				acts = append(acts, []act{
					{"leader killed", func() { d.killOne(d.leads(e)) }},
					{"follower killed", func() { d.killOne(d.follows(e)) }},
					{"all killed", d.killAll},
					{"disk of a follower lost", func() { d.lose(d.follows(e)) }},
					{"disk of the leader lost", func() { d.lose(d.leads(e)) }},
					{"deleted and applied", d.again},
					{"bad update, cured", func() { d.wedge(); d.cure() }},
				}...)
			}
			if length > 0 && e.gave != "" {
				acts = append(acts, act{"leave taken back", func() { d.takeBack(e.gave) }})
			}
			d.through(acts, length, chance)
		})
	}
}

// through does each act once and then others by chance, under load, and tells how often and for how long at most.
func (d *database) through(acts []act, length time.Duration, chance *rand.Rand) {
	d.t.Helper()
	stop, end := d.startLoad(d.load...), time.Now().Add(length)
	counts, longest := map[string]int{}, map[string]time.Duration{}
	for i := 0; !d.t.Failed() && (i < len(acts) || time.Now().Before(end)); i++ {
		a := acts[i%len(acts)]
		if i >= len(acts) {
			a = acts[chance.IntN(len(acts))]
		}
		began := time.Now()
		d.t.Log(began.UTC().Format(time.TimeOnly), a.what)
		a.do()
		counts[a.what]++
		longest[a.what] = max(longest[a.what], time.Since(began).Round(time.Second))
	}
	stop()
	var names []string
	for _, i := range d.initial() {
		names = append(names, d.name(i))
	}
	d.assertOneLife(d.heard, names...)
	d.t.Logf("acts: %v, at most %v", counts, longest)
}

// leads is the member that leads now.
func (d *database) leads(e entry) (ordinal int) {
	d.t.Helper()
	d.eventually(time.Minute, e.set+" has a leader", func() (err error) {
		ordinal, err = e.leader(d.Lab)
		return err
	})
	return ordinal
}

// follows is a member that does not lead now.
func (d *database) follows(e entry) (ordinal int) {
	d.t.Helper()
	if e.follower == nil {
		return (d.leads(e) + 1) % d.size
	}
	d.eventually(time.Minute, e.set+" has a follower", func() (err error) {
		ordinal, err = e.follower(d.Lab)
		return err
	})
	return ordinal
}

// takeBack lets two members join and leave, and wants them again while the first of them gives up what it has.
func (d *database) takeBack(gave string) {
	d.t.Helper()
	was := d.tales()
	scale := func(n int) {
		d.stead("scale", d.set, "--replicas", fmt.Sprint(n), "--wait", "--timeout", d.patience())
		d.waitWhole(n)
	}
	scale(5)
	d.most = 5
	d.stead("scale", d.set, "--replicas", "3")
	mark := d.path("agent/volumes/default", d.set, "data-4/data", gave)
	d.eventually(2*time.Minute, d.name(4)+" gives up what it has", func() error {
		_, err := os.Stat(mark)
		return err
	})
	scale(5)
	scale(3)
	d.untouched(was, 0, 1, 2)
}

// growAndShrink adds two members, of which new data gets a share, and takes them out again.
func (d *database) growAndShrink() {
	d.t.Helper()
	was := d.tales()
	scale := func(n int) {
		d.stead("scale", d.set, "--replicas", fmt.Sprint(n), "--wait", "--timeout", d.patience())
		d.waitWhole(n)
	}
	scale(d.size + 2)
	stop := d.startLoad(append([]string{"--prefix", "grown/"}, d.load...)...)
	d.all[len(d.all)-1].waitSaid(d.Lab, "writing\nwriting\n")
	scale(d.size)
	stop()
	d.most = d.size + 2
	d.untouched(was, d.initial()...)
}

// empty takes all data of a running member and kills it. Unlike one whose disk is lost, it is there again
// before the others miss it: as an empty leader, if nothing keeps it from that.
func (d *database) empty(ordinal int) {
	d.t.Helper()
	disk := d.path("agent/volumes/default", d.set, fmt.Sprint("data-", ordinal), "data")
	entries, err := os.ReadDir(disk)
	if err != nil {
		d.t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() == "life.lock" { // the witness's
			continue
		}
		if err := removeAll(filepath.Join(disk, e.Name())); err != nil {
			d.t.Fatal(err)
		}
	}
	d.killOne(ordinal)
}

// lose takes the whole disk of a running member. Stead starts it nowhere until an operator says that
// the disk is lost; then it copies all from the others.
func (d *database) lose(ordinal int) {
	d.t.Helper()
	name, volume := d.name(ordinal), "data-"+d.name(ordinal)
	was, before := d.tales(), d.mustMember(name)
	if err := removeAll(d.path("agent/volumes/default", d.set, fmt.Sprint("data-", ordinal))); err != nil {
		d.t.Fatal(err)
	}
	d.stead("restart", name)
	d.eventually(2*time.Minute, name+" misses its volume", func() error { return d.steadSays("VolumeMissing", "explain", name) })
	if out := d.stead("volume", "reclaim", volume, "--lost", "--yes", "--wait", "--timeout", d.patience()); !strings.Contains(out, "is gone") {
		d.t.Errorf("reclaim says %q", out)
	}
	d.waitReadyFor(2*time.Minute, name, &before)
	d.waitWhole(d.size)
	d.untouched(was, d.others(ordinal)...)
}

// again deletes the set and applies it again, with the volumes that are kept.
func (d *database) again() {
	d.t.Helper()
	d.stead("delete", "set", d.set, "--wait", "--timeout", d.patience())
	d.applyVariant(d.edit(), d.image, "--wait", "--timeout", d.patience())
	d.waitWhole(d.size)
}
