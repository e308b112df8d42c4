package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const (
	sparkApp    = "spark-app-0.spark-app.default.svc.cluster.local:8080"
	sparkMaster = "spark-master"
	sparkWorker = "spark-worker"
)

// witnessedWithoutDisk tells of a member that has no volume.
var witnessedWithoutDisk = strings.NewReplacer("--listen=]", "--listen=, --lock=]", "          volumeMounts: [{name: data, mountPath: /data}]\n", "").Replace(witnessed)

// TestAnApplicationOfSparkComputesRightUnderFaults: one application lives through all acts. Each sum that it answers is compared
// with the right one, and in the end computed again from what the jobs left on the workers' disks.
func TestAnApplicationOfSparkComputesRightUnderFaults(t *testing.T) {
	t.Parallel()
	length, chance := soakFor(t)
	if length == 0 {
		t.Skip("a piece of make soak: its image needs Maven Central")
	}
	masters, workers := beginSpark(t)
	l := workers.Lab
	application := l.sparkApplication()
	workers.through([]act{
		{"all masters killed", masters.killAll},
		{"all workers killed", workers.killAll},
		{"disk of a worker lost", func() { workers.lose(2) }},
		{"leave of workers taken back", func() { workers.stay(5) }},
		{"workers deleted and applied", workers.again},
		{"masters deleted and applied", masters.again},
		{"worker killed with its disk empty", func() { workers.empty(0) }},
		{"bad update of workers, cured", func() { workers.wedge(); workers.cure() }},
		{"active master killed", func() { masters.killOne(masters.leads(entry{set: sparkMaster, leader: leaderSpark})) }},
		{"worker killed", func() { workers.killOne(1) }},
		{"two more workers, and back", workers.growAndShrink},
		{"rolling update of workers", workers.roll},
		{"rolling update of masters", masters.roll},
	}, length, chance)
	if now := l.sparkApplication(); now != application {
		t.Errorf("the application was %s and is %s", application, now)
	}
	l.assertOneLife(masters.heard, masters.name(0), masters.name(1), masters.name(2))
}

// stay lets members join and leave, and wants them again at once.
func (d *database) stay(n int) {
	d.t.Helper()
	was := d.tales()
	d.most = n
	for _, step := range []struct {
		replicas int
		whole    bool
	}{{n, true}, {d.size, false}, {n, true}, {d.size, true}} {
		d.stead("scale", d.set, "--replicas", fmt.Sprint(step.replicas))
		if step.whole {
			d.stead("scale", d.set, "--replicas", fmt.Sprint(step.replicas), "--wait", "--timeout", d.patience())
			d.waitWhole(step.replicas)
			continue
		}
		d.eventually(time.Minute, "a member leaves", func() error { return d.steadSays("decommission", "explain", d.set) })
	}
	d.untouched(was, d.initial()...)
}

// beginSpark starts the masters and the workers of examples/spark on the ZooKeeper of examples/, and an application.
func beginSpark(t *testing.T) (masters, workers *database) {
	t.Helper()
	l := newLab(t)
	l.slow = 15 * time.Minute
	l.startAll(l.debImage("spark"), zookeeperArchive, l.toolArchive())
	l.stead("apply", "-f", "../../examples/zookeeper/zookeeper.yaml", "--wait", "--timeout", l.patience())
	heard := l.startWitness()

	text, err := os.ReadFile("../../examples/spark/spark.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var shared []string
	sets := map[string]string{} // the file of each
	for _, object := range strings.Split(string(text), "\n---\n") {
		_, name, isSet := strings.Cut(object, "kind: StatefulSet\nmetadata:\n  name: ")
		if !isSet {
			shared = append(shared, object)
			continue
		}
		name, _, _ = strings.Cut(name, "\n")
		sets[name] = l.path(name + "-as-it-is.yaml")
		if err := os.WriteFile(sets[name], []byte(object), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l.apply("spark-shared", strings.Join(shared, "\n---\n"))
	part := func(set, tells string, whole func(*Lab, int) error) *database {
		return &database{Lab: l, set: set, file: sets[set], tells: tells, image: "stead.local/spark:4.0.4", heard: heard, size: 3, most: 3,
			load: []string{"--kind", "spark", "--endpoints", sparkApp}, whole: func(n int) error { return whole(l, n) }}
	}
	masters, workers = part(sparkMaster, witnessedWithoutDisk, wholeSparkMasters), part(sparkWorker, "", wholeSparkWorkers)
	for _, d := range []*database{masters, workers} {
		d.applyVariant(d.edit(), d.image, "--wait", "--timeout", d.patience())
		d.waitWhole(d.size)
	}

	program, err := os.ReadFile(filepath.Join("testdata", "spark", "Sums.java"))
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := os.ReadFile(filepath.Join("testdata", "spark", "app.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	l.apply("spark-app", string(manifest)+"    "+strings.ReplaceAll(strings.TrimSpace(string(program)), "\n", "\n    ")+"\n", "--wait", "--timeout", l.patience())
	return masters, workers
}

// sparkApplication is how the masters know the application.
func (l *Lab) sparkApplication() (id string) {
	l.t.Helper()
	l.eventually(time.Minute, "the application answers", func() (err error) {
		id, err = l.monitor("spark-app", 0, ":8080/")
		if err == nil && !strings.HasPrefix(id, "app-") {
			err = errors.New(id)
		}
		return err
	})
	return id
}

// sparkSays is what a master says of itself and of what it knows.
type sparkSays struct {
	Status  string
	Workers []struct{ Host, State string }
	Apps    []struct {
		Name, State string
	} `json:"activeapps"`
}

func (l *Lab) sparkSays(ordinal int) (says sparkSays, err error) {
	out, err := l.monitor(sparkMaster, ordinal, ":8080/json/")
	if err == nil {
		err = json.Unmarshal([]byte(out), &says)
	}
	if err != nil {
		err = fmt.Errorf("spark-master-%d: %w: %s", ordinal, err, out)
	}
	return says, err
}

// leaderSpark is the master that is active.
func leaderSpark(l *Lab) (int, error) {
	for i := range 3 {
		if says, err := l.sparkSays(i); err == nil && says.Status == "ALIVE" {
			return i, nil
		}
	}
	return 0, errors.New("no master is active")
}

// wholeSparkMasters wants one active master of n, and that Stead's Service leads to it.
func wholeSparkMasters(l *Lab, n int) error {
	active := -1
	for i := range n {
		says, err := l.sparkSays(i)
		switch {
		case err != nil:
			return err
		case says.Status == "ALIVE" && active >= 0:
			return fmt.Errorf("masters %d and %d are active", active, i)
		case says.Status == "ALIVE":
			active = i
		case says.Status != "STANDBY":
			return fmt.Errorf("master %d is %s", i, says.Status)
		}
	}
	m, err := l.member(fmt.Sprint(sparkMaster, "-", active))
	if err != nil {
		return fmt.Errorf("no master is active: %w", err)
	}
	at, err := l.dig("spark-leader.default.svc.cluster.local")
	if err == nil && at != m.Status.Address {
		err = fmt.Errorf("master %d at %s is active, and the Service leads to %q", active, m.Status.Address, at)
	}
	return err
}

// wholeSparkWorkers wants n workers that the active master gives work to, and the application if there is one.
func wholeSparkWorkers(l *Lab, n int) error {
	leader, err := leaderSpark(l)
	if err != nil {
		return err
	}
	says, err := l.sparkSays(leader)
	if err != nil {
		return err
	}
	hosts := map[string]bool{}
	for _, w := range says.Workers {
		if w.State == "ALIVE" {
			hosts[w.Host] = true
		}
	}
	if len(hosts) != n {
		return fmt.Errorf("the active master gives work to %v, and not to %d workers", hosts, n)
	}
	for _, app := range says.Apps {
		if app.State != "RUNNING" {
			return fmt.Errorf("the application is %s", app.State)
		}
	}
	return nil
}
