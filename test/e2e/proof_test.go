package e2e

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stead-project/stead/test/judge"
)

// database is one of the examples with a witness in each of its members, written to
// without a pause while the acts of this file go on.
type database struct {
	*Lab
	set   string
	file  string // its manifest; empty: examples/SET/SET.yaml
	tells string // the container that tells of each member; empty: witnessed
	image string // as the example names it
	load  []string
	heard string // the witness's file

	// whole fails until n members belong to the database, as itself says.
	whole func(n int) error
	// disk is where a member's data lies, below its volume.
	disk string
	// release does what the member asks the operator for when its disk is lost.
	release func(ordinal int)

	size  int // members with which it began
	edits int // of the template, ever
	most  int // members there ever were
}

// witnessed is the container that tells of its member's life. It locks a file of
// the volume, too: two lives at once would meet there.
const witnessed = `        - name: witness
          image: stead.local/tool:1
          imagePullPolicy: Never
          command: [/box, life, --listen=]
          volumeMounts: [{name: data, mountPath: /data}]
      volumes:
        - name: entry
`

const refusedDisk = "refused: the disk is empty, but"

func newDatabase(t *testing.T, set string) *database {
	t.Helper()
	d := &database{Lab: newLab(t), set: set, size: 3, most: 3}
	archive := etcdArchive
	d.image, d.disk, d.load = "stead.local/etcd:3.4.23", "etcd", []string{"--endpoints", etcdEndpoints}
	d.whole, d.release = d.wholeEtcd, d.releaseEtcd
	if set == "zookeeper" {
		archive = zookeeperArchive
		d.image, d.disk, d.load = "stead.local/zookeeper:3.8.0", "zookeeper", []string{"--kind", set, "--endpoints", zookeeperEndpoints()}
		d.whole, d.release = d.wholeZooKeeper, d.releaseZooKeeper
	}
	if _, err := os.Stat(archive); err != nil {
		t.Fatalf("no image of %s: %v; run make image", set, err)
	}
	d.startAll(archive, d.toolArchive())
	d.heard = d.startWitness()
	d.applyVariant(d.edit(), d.image, "--wait", "--timeout", patience)
	d.waitWhole(d.size)
	return d
}

// edit names a new variant of the template.
func (d *database) edit() string {
	d.edits++
	return fmt.Sprint("v", d.edits)
}

// applyVariant applies the example as variant says.
func (d *database) applyVariant(value, image string, flags ...string) {
	d.t.Helper()
	d.apply(d.set, d.variant(value, image), flags...)
}

// variant is the example with the witness, an annotation of its members and an image.
func (d *database) variant(value, image string) string {
	d.t.Helper()
	file := cmp.Or(d.file, "../../examples/"+d.set+"/"+d.set+".yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		d.t.Fatal(err)
	}
	manifest := string(text)
	for _, change := range [][2]string{
		{"      volumes:\n        - name: entry\n", cmp.Or(d.tells, witnessed)},
		{"          image: " + d.image + "\n", "          image: " + image + "\n"},
		{"      labels: {app: " + d.set + "}\n    spec:\n", "      labels: {app: " + d.set + "}\n      annotations: {variant: " + value + "}\n    spec:\n"},
	} {
		if strings.Count(manifest, change[0]) != 1 {
			d.t.Fatalf("%s: %q does not stand there once", file, change[0])
		}
		manifest = strings.Replace(manifest, change[0], change[1], 1)
	}
	return manifest
}

func (d *database) name(ordinal int) string { return fmt.Sprint(d.set, "-", ordinal) }

func (d *database) waitWhole(n int) {
	d.t.Helper()
	d.eventually(2*time.Minute, fmt.Sprintf("%s has %d members", d.set, n), func() error { return d.whole(n) })
}

// tale is what stays of a member that nobody concerned: its life, address, restarts
// and the start times of its containers' first processes.
type tale struct{ token, address, begun string }

func (d *database) tales() (all []tale) {
	d.t.Helper()
	for i := range d.size {
		m := d.mustMember(d.name(i))
		all = append(all, tale{m.Status.Token, m.Status.Address, d.begun(d.name(i))})
	}
	return all
}

// untouched fails the test when one of the members is not what it was.
func (d *database) untouched(was []tale, ordinals ...int) {
	d.t.Helper()
	now := d.tales()
	for _, i := range ordinals {
		if now[i] != was[i] {
			judge.Broken(d.t, "%s was %+v and is %+v, though it was not concerned", d.name(i), was[i], now[i])
		}
	}
}

// replaced fails the test unless each of the members has another life at its old address.
func (d *database) replaced(was []tale, ordinals ...int) {
	d.t.Helper()
	now := d.tales()
	for _, i := range ordinals {
		if now[i].token == was[i].token || now[i].begun == was[i].begun || now[i].address != was[i].address {
			d.t.Errorf("%s was %+v and is %+v; want another life at the same address", d.name(i), was[i], now[i])
		}
	}
}

// roll updates all members.
func (d *database) roll() {
	d.t.Helper()
	was := d.tales()
	d.applyVariant(d.edit(), d.image, "--wait", "--timeout", d.patience())
	d.replaced(was, d.initial()...)
	d.waitWhole(d.size)
}

// wedge applies an image that is nowhere, and waits until the update stands still before
// its first member.
func (d *database) wedge() {
	d.t.Helper()
	was := d.tales()
	d.applyVariant(fmt.Sprint("bad", d.edits), "stead.local/none:1")
	d.heldByImage(d.set, "stead.local/none:1")
	d.untouched(was, d.initial()...)
}

// cure applies the same file with a right image and does nothing else.
func (d *database) cure() {
	d.t.Helper()
	was := d.tales()
	d.applyVariant(d.edit(), d.image, "--wait", "--timeout", d.patience())
	d.replaced(was, d.initial()...)
	d.waitWhole(d.size)
}

// undo goes back from a bad update: whom it did not reach is left alone.
func (d *database) undo() {
	d.t.Helper()
	was := d.tales()
	d.stead("rollout", "undo", d.set)
	d.stead("rollout", "status", d.set, "--timeout", patience)
	d.untouched(was, d.initial()...)
	d.waitWhole(d.size)
}

// wipe empties a running member's disk and kills it: it keeps away by itself until
// an operator says that its data is lost for good, and then copies all of it.
func (d *database) wipe(ordinal int) {
	d.t.Helper()
	disk := d.path("agent/volumes/default", d.set, fmt.Sprint("data-", ordinal), "data", d.disk)
	if found, err := os.ReadDir(disk); err != nil || len(found) == 0 {
		d.t.Fatalf("the disk of %s holds %v, %v", d.name(ordinal), found, err)
	}
	was, before := d.tales(), d.mustMember(d.name(ordinal))
	if err := removeAll(disk); err != nil { // before the next run can look at it
		d.t.Fatal(err)
	}
	d.killMember(d.name(ordinal))
	d.eventually(2*time.Minute, "the member says why it does not start", func() error {
		out, err := d.trySteadFor(time.Minute, "logs", d.name(ordinal), "-c", d.set, "--tail", "3")
		if err == nil && !strings.Contains(out, refusedDisk) {
			err = fmt.Errorf("%s", out)
		}
		return err
	})
	d.release(ordinal)
	d.waitReadyFor(2*time.Minute, d.name(ordinal), &before)
	d.waitWhole(d.size)
	d.untouched(was, d.others(ordinal)...)
}

// removeAll removes a directory that a dying program may still write to.
func removeAll(dir string) (err error) {
	for range 50 {
		if err = os.RemoveAll(dir); err == nil {
			break
		}
	}
	return err
}

// killAll ends all members at once.
func (d *database) killAll() {
	d.t.Helper()
	before := make([]member, d.size)
	for i := range before {
		before[i] = d.mustMember(d.name(i))
	}
	for i := range before {
		d.killMember(d.name(i))
	}
	for i := range before {
		d.waitReadyFor(3*time.Minute, d.name(i), &before[i])
	}
	d.waitWhole(d.size)
}

func TestEtcdLosesNothingThroughUpdatesAndLostDisks(t *testing.T) {
	t.Parallel()
	newDatabase(t, "etcd").prove()
}

func TestZooKeeperLosesNothingThroughUpdatesAndLostDisks(t *testing.T) {
	t.Parallel()
	newDatabase(t, "zookeeper").prove()
}

// prove does each act once and, in a soak, goes on by chance until its time is over.
func (d *database) prove() {
	d.t.Helper()
	stop := d.startLoad(d.load...)
	for _, a := range []act{
		{"a disk is emptied", func() { d.wipe(1) }},
		{"a rolling update", d.roll},
		{"an update to an image that is nowhere", d.wedge},
		{"back by rollout undo", d.undo},
		{"the same update again", d.wedge},
		{"cured by the corrected file alone", d.cure},
		{"all are killed at once", d.killAll},
	} {
		d.t.Log(a.what)
		a.do()
	}
	d.soak()
	stop()
	d.assertOneLife(d.heard, d.name(0), d.name(1), d.name(2))
	volumes, err := filepath.Glob(d.path("agent/volumes/default", d.set, "*"))
	if err != nil || len(volumes) != d.most {
		judge.Broken(d.t, "volumes: %v, %v; want %d", volumes, err, d.most)
	}
}

// act is something that happens to a database.
type act struct {
	what string
	do   func()
}
