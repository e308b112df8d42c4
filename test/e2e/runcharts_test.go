package e2e

import (
	"archive/tar"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stead-project/stead/test/judge"
)

// runChart is a rendering of manifest/testdata/charts with software of Debian.
type runChart struct {
	name    string            // of the file
	images  map[string]string // by the name that the manifest says: the list of scripts/images
	members []string
	inside  string // the container of members in which questions are asked
	formed  string // a script, run in the first member: do the members know each other?
	is      string // what formed prints then, as a regular expression
	write   string // leaves something to keep
	written string // what write prints
	read    string // asks for it
	kept    string // what read prints
	killed  string // the member that is killed
	// volatile: what is kept is lost by an update, as the software has no disk.
	volatile bool
}

// chartLimit is the time for a chart's members to become ready one after the other, with the delays that
// charts give their probes.
const chartLimit = 12 * time.Minute

var chartChecksum = regexp.MustCompile(`(checksum/[a-z-]+): "1"`)

// TestTenChartsRun runs charts' manifests as they are with the real software: its members find each other by
// names and by the Services' addresses; what was written is there after an update and a kill. Without
// STEAD_SOAK it runs etcd, and Redis, which has init containers, a sidecar, hooks and Services by address.
func TestTenChartsRun(t *testing.T) {
	for _, c := range chartsThatRun {
		if os.Getenv("STEAD_SOAK") == "" && c.name != "redis" && c.name != "etcd" {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.run(newLab(t))
		})
	}
}

func (c runChart) run(l *Lab) {
	l.startServer()
	l.startAgent()
	for name, list := range c.images {
		l.loadAs(list, name)
	}
	manifest, err := os.ReadFile("../../manifest/testdata/charts/" + c.name + ".yaml")
	if err != nil {
		l.t.Fatal(err)
	}
	began := time.Now()
	var done []string
	took := func(what string) {
		done = append(done, fmt.Sprintf("%s in %s", what, time.Since(began).Round(time.Second)))
		began = time.Now()
	}
	defer func() { l.t.Logf("chart: %s %s", c.name, strings.Join(done, ", ")) }()
	c.apply(l, string(manifest))
	c.ask(l, "its members know each other", c.formed, c.is)
	c.ask(l, "it takes data", c.write, c.written)
	took("formed")

	was := c.lives(l)
	c.apply(l, chartChecksum.ReplaceAllString(string(manifest), `$1: "2"`))
	c.updated(l, was)
	c.ask(l, "its members know each other after the update", c.formed, c.is)
	if c.volatile {
		c.ask(l, "it takes data again", c.write, c.written)
	}
	c.ask(l, "the data is there after the update", c.read, c.kept)
	took("updated")

	before := l.mustMember(c.killed)
	l.killMember(c.killed)
	l.waitReady(c.killed, &before)
	c.ask(l, "its members know each other after the kill", c.formed, c.is)
	c.ask(l, "the data is there after the kill", c.read, c.kept)
	if now := l.mustMember(c.killed).Status; now.Address != before.Status.Address {
		judge.Broken(l.t, "%s was at %s, and is at %s", c.killed, before.Status.Address, now.Address)
	}
	took("a member killed")

	l.stead("delete", "-f", l.path(c.name+".yaml"))
	l.eventually(chartLimit, "nothing of it is left", func() error {
		for _, m := range c.members {
			if pids := l.pidsOf(m); len(pids) > 0 {
				return fmt.Errorf("%s has the processes %v", m, pids)
			}
		}
		return nil
	})
	took("deleted")
}

// apply applies the chart and waits until all its members are ready.
func (c runChart) apply(l *Lab, manifest string) {
	l.t.Helper()
	file := l.path(c.name + ".yaml")
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		l.t.Fatal(err)
	}
	out, err := l.trySteadFor(chartLimit+time.Minute, "apply", "-f", file, "--wait", "--timeout", chartLimit.String())
	if err != nil {
		l.t.Fatalf("%s: %v\n%s\n%s", c.name, err, out, l.stead("get", "members"))
	}
}

// ask repeats a question until the answer is right.
func (c runChart) ask(l *Lab, what, script, want string) {
	l.t.Helper()
	right := regexp.MustCompile(want)
	l.eventually(time.Minute, c.name+": "+what, func() error {
		out, err := l.trySteadFor(time.Minute, "exec", c.members[0], "-c", c.inside, "--", "bash", "-c", script)
		if err != nil || !right.MatchString(out) {
			return fmt.Errorf("%q, %v; want %s", out, err, want)
		}
		return nil
	})
}

// lives are the members and the lives that they have.
func (c runChart) lives(l *Lab) map[string]member {
	l.t.Helper()
	lives := map[string]member{}
	for _, name := range c.members {
		lives[name] = l.mustMember(name)
	}
	return lives
}

// updated waits until each member has another life, and is ready.
func (c runChart) updated(l *Lab, was map[string]member) {
	l.t.Helper()
	for name, m := range was {
		l.eventually(chartLimit, name+" is updated", func() error {
			now, err := l.member(name)
			if err == nil && (now.Status.Token == m.Status.Token || !now.Status.Ready) {
				err = fmt.Errorf("%+v", now.Status)
			}
			return err
		})
	}
}

// loadAs loads the image of a list onto the lab's node, under the name that a chart has for it.
func (l *Lab) loadAs(list, name string) {
	l.t.Helper()
	archive := l.debImage(list)
	loaded := strings.Fields(l.stead("image", "load", archive))[1]
	l.ctr("image", "tag", "--force", loaded, fullImageName(name))
}

// debImage is the archive of a list's image: that of make image, if it is of the version that the list says, or one that is
// built into the lab's directory and goes with it.
func (l *Lab) debImage(list string) string {
	l.t.Helper()
	made, err := filepath.Abs("../../.cache/images/" + list + ".tar")
	if err != nil {
		l.t.Fatal(err)
	}
	text, err := os.ReadFile("../../scripts/images/" + list + ".list")
	if err != nil {
		l.t.Fatal(err)
	}
	if name := archiveImage(made); name != "" && strings.Contains(string(text), "\nimage "+name+"\n") {
		return made
	}
	archive := l.path("images", list+".tar")
	if _, err := os.Stat(archive); err == nil {
		return archive
	}
	cmd := exec.Command("go", "run", "./scripts/debimage", "-out", filepath.Dir(archive), list)
	cmd.Dir = "../.."
	if out, err := cmd.CombinedOutput(); err != nil {
		l.t.Fatalf("image of %s: %v\n%s", list, err, out)
	}
	return archive
}

// archiveImage is the name of the image in an OCI archive; empty: there is none.
func archiveImage(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	for r := tar.NewReader(f); ; {
		h, err := r.Next()
		if err != nil {
			return ""
		}
		if h.Name != "index.json" {
			continue
		}
		var index struct {
			Manifests []struct{ Annotations map[string]string }
		}
		if json.NewDecoder(r).Decode(&index) != nil || len(index.Manifests) != 1 {
			return ""
		}
		return index.Manifests[0].Annotations["org.opencontainers.image.ref.name"]
	}
}

// fullImageName is a name as containerd has it: with its registry.
func fullImageName(name string) string {
	first, _, below := strings.Cut(name, "/")
	switch {
	case !below:
		return "docker.io/library/" + name
	case !strings.ContainsAny(first, ".:"):
		return "docker.io/" + name
	}
	return name
}
