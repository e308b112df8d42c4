package session

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// countingDir notes which documents are written and removed, and fails when it is to.
type countingDir struct {
	Dir
	done []string
	fail error
}

func (d *countingDir) Put(name string, doc any) error {
	if d.fail != nil {
		return d.fail
	}
	d.done = append(d.done, name)
	return d.Dir.Put(name, doc)
}

func (d *countingDir) Remove(name string) error {
	d.done = append(d.done, "-"+name)
	return d.Dir.Remove(name)
}

func (d *countingDir) take() []string {
	done := d.done
	d.done = nil
	return done
}

func pictureOf(name spec.SetName, rev int64) records.Snapshot {
	return records.Snapshot{Sequence: spec.Sequence{Epoch: 1, Rev: rev}, Ref: spec.SetRef{Namespace: "default", Name: name}, Replicas: int(rev)}
}

func historyOf(name spec.SetName, numbers ...int64) []records.History {
	h := records.History{Ref: spec.SetRef{Namespace: "default", Name: name}}
	for _, n := range numbers {
		h.Changes = append(h.Changes, records.Change{Epoch: 1, Number: n})
	}
	return []records.History{h}
}

// A Service that nodes are sent by itself is kept for the next agent as sets are, and is never asked for.
func TestAServiceOfItsOwnIsKept(t *testing.T) {
	dir := Tmpfs(t.TempDir())
	c := OpenSnapshots(dir, slog.New(slog.DiscardHandler))
	p := records.Snapshot{Sequence: spec.Sequence{Epoch: 1, Rev: 1}, Ref: spec.Namespace("default").ServiceRef("out"), Names: []records.DNSName{{Name: "out", ExternalName: "a.example"}}}
	c.Put(p.Sequence, true, []records.Snapshot{p})
	if err := c.Save(); err != nil {
		t.Fatal(err)
	}
	next := OpenSnapshots(dir, slog.New(slog.DiscardHandler))
	if got := next.All(); len(got) != 1 || got[0].Ref != p.Ref || got[0].Names[0].ExternalName != "a.example" {
		t.Errorf("the next agent has %+v", got)
	}
	i := NewInterests(next, func() time.Duration { return 0 }, func() {})
	i.Asked(p.Ref)
	if list := i.all().GetSets(); len(list) > 0 {
		t.Errorf("it asks for %v", list)
	}
}

// What changed of a set is kept with its history, and nothing else is written.
func TestOnlySetsThatChangedAreWritten(t *testing.T) {
	dir := &countingDir{Dir: Tmpfs(t.TempDir())}
	c := OpenSnapshots(dir, slog.New(slog.DiscardHandler))
	seq := func(rev int64) spec.Sequence { return spec.Sequence{Epoch: 1, Rev: rev} }
	for _, step := range []struct {
		name   string
		change func()
		fail   error
		want   []string
	}{
		{"at first", func() { c.Put(seq(1), true, []records.Snapshot{pictureOf("a", 1), pictureOf("b", 1)}) }, nil,
			[]string{"sets/default.a.json", "sets/default.b.json"}},
		{"nothing", func() { c.Put(seq(2), false, nil) }, nil, nil},
		{"one set", func() { c.Put(seq(3), false, []records.Snapshot{pictureOf("b", 3)}) }, nil, []string{"sets/default.b.json"}},
		{"a history", func() { c.AddHistories(historyOf("a", 1, 2)) }, nil, []string{"sets/default.a.json"}},
		{"the hosts", func() { c.PutHosts([]string{"192.0.2.1"}) }, nil, []string{"hosts.json"}},
		{"the tunnel", func() { c.PutTunnel([]byte(`{"kind":"both"}`)) }, nil, []string{"tunnel.json"}},
		{"a set that is gone", func() {
			c.Put(seq(4), false, []records.Snapshot{{Ref: pictureOf("b", 4).Ref, Sequence: seq(4), Gone: true}})
		}, nil,
			[]string{"-sets/default.b.json"}},
		{"the disk is full", func() {
			c.Put(seq(5), false, []records.Snapshot{pictureOf("c", 5)})
			c.PutHosts([]string{"192.0.2.2"})
		}, fs.ErrPermission, nil},
		{"it has room again", func() {}, nil, []string{"sets/default.c.json", "hosts.json"}},
		{"a set that is not in a full list", func() { c.Put(seq(6), true, []records.Snapshot{pictureOf("a", 6)}) }, nil,
			[]string{"sets/default.a.json", "-sets/default.c.json"}},
		{"a name that cannot be a file's", func() { c.Put(seq(7), false, []records.Snapshot{pictureOf("../x", 7)}) }, nil, nil},
	} {
		step.change()
		dir.fail = step.fail
		if err := c.Save(); !errors.Is(err, step.fail) {
			t.Fatalf("%s: %v", step.name, err)
		}
		if got := dir.take(); !slices.Equal(got, step.want) {
			t.Errorf("%s: written %q, want %q", step.name, got, step.want)
		}
	}
	next := OpenSnapshots(dir.Dir, slog.New(slog.DiscardHandler))
	a := pictureOf("a", 6)
	if all := next.All(); len(all) != 1 || all[0].Replicas != 6 || len(next.History(a.Ref)) != 2 {
		t.Errorf("the next agent has %+v, %v", all, next.History(a.Ref))
	}
}

// An agent takes over what one of the version before kept in two files, also when that one ran
// after one of this version; what cannot be read takes nothing else away.
func TestFilesOfTheVersionBeforeAreTakenOver(t *testing.T) {
	path := t.TempDir()
	dir := Tmpfs(path)
	for name, doc := range map[string]any{
		"pictures.json": []records.Snapshot{pictureOf("a", 5), pictureOf("b", 5)}, "histories.json": historyOf("a", 1, 2, 3),
		"sets/default.a.json": savedSet{Snapshot: new(pictureOf("a", 4)), History: historyOf("a", 1)[0]},
		"sets/default.b.json": savedSet{Snapshot: new(pictureOf("b", 6)), History: historyOf("b", 7)[0]},
	} {
		must(t, dir.Put(name, doc))
	}
	must(t, os.WriteFile(filepath.Join(path, "sets", "default.c.json"), []byte("{"), 0o600))
	for range 2 { // the second reads what the first kept
		c := OpenSnapshots(dir, slog.New(slog.DiscardHandler))
		a, _ := c.Find(pictureOf("a", 0).Ref)
		b, _ := c.Find(pictureOf("b", 0).Ref)
		if a.Replicas != 5 || len(c.History(a.Ref)) != 3 || b.Replicas != 6 || len(c.History(b.Ref)) != 1 {
			t.Errorf("a %+v %v, b %+v %v", a, c.History(a.Ref), b, c.History(b.Ref))
		}
		must(t, c.Save())
		for _, name := range []string{"pictures.json", "histories.json"} {
			if _, err := os.Stat(filepath.Join(path, name)); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s is still there: %v", name, err)
			}
		}
	}
}
