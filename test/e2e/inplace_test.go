package e2e

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stead-project/stead/agent/runtime/runtimetest"
	"github.com/stead-project/stead/test/judge"
)

// inPlaceSet has two containers, of which tests change the first. Its preStop hook leaves time to look at a change that is under way.
const inPlaceSet = `
apiVersion: stead/v1
kind: StatefulSet
metadata: {name: still}
spec:
  replicas: 3
  selector: {matchLabels: {app: still}}
  updateStrategy: {inPlace: [Resources, Image]}
  template:
    metadata: {labels: {app: still}}
    spec:
      terminationGracePeriodSeconds: 10
      containers:
      - name: main
        image: stead.local/IMAGE
        imagePullPolicy: Never
        command: [/box, command, wait]
        lifecycle: {preStop: {sleep: {seconds: 3}}}
        resources: {limits: {memory: MEMORY, cpu: CPU}, requests: {memory: 16Mi, cpu: 10m}}
      - name: beside
        image: stead.local/tool:1
        imagePullPolicy: Never
        command: [/box, command, wait]
`

func inPlace(image, memory, cpu string) string {
	return strings.NewReplacer("IMAGE", image, "MEMORY", memory, "CPU", cpu).Replace(inPlaceSet)
}

// still is what stays of a member when it is changed in place, and what does not.
type still struct {
	life         member
	main, beside string // first process, and when it began
}

func (l *Lab) stillOf(name string) (s still) {
	l.t.Helper()
	s.life = l.mustMember(name)
	l.eventually(time.Minute, "both containers of "+name+" run", func() error {
		found := l.begun(name)
		fields := strings.Fields(found)
		if len(fields) != 2 || !strings.HasPrefix(fields[0], "beside=") || !strings.HasPrefix(fields[1], "main=") {
			return fmt.Errorf("it has %q", found)
		}
		s.beside, s.main = fields[0], fields[1]
		return nil
	})
	return s
}

func (l *Lab) stills() (list [3]still) {
	l.t.Helper()
	for i := range list {
		list[i] = l.stillOf(fmt.Sprint("still-", i))
	}
	return list
}

// sameLives: lives and addresses are what they were, all of one revision, nothing crashed, and beside ran on; main too, unless changed.
func (l *Lab) sameLives(before [3]still, changed bool) (now [3]still) {
	l.t.Helper()
	now = l.stills()
	for i, was := range before {
		is, name := now[i], was.life.Status.Name
		if is.life.Status.Token != was.life.Status.Token || is.life.Status.Address != was.life.Status.Address || is.life.Status.Restarts != 0 {
			judge.Broken(l.t, "%s had the life %+v, and has %+v", name, was.life.Status, is.life.Status)
		}
		if is.beside != was.beside || (is.main != was.main) != changed {
			judge.Broken(l.t, "%s: %s and %s became %s and %s", name, was.main, was.beside, is.main, is.beside)
		}
		if is.life.Status.Revision != now[0].life.Status.Revision {
			l.t.Errorf("%s is of revision %s, still-0 of %s", name, is.life.Status.Revision, now[0].life.Status.Revision)
		}
	}
	return now
}

// inTurn: the main containers began one after the other, from the highest down, no two within the hook of the next.
func inTurn(t *testing.T, now [3]still) {
	t.Helper()
	began := func(i int) int64 {
		_, text, _ := strings.Cut(now[i].main, "@")
		ticks, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return ticks
	}
	for i := range 2 {
		if began(i)-began(i+1) < 250 { // of 300 hundredths
			t.Errorf("still-%d began %d ticks after still-%d", i, began(i)-began(i+1), i+1)
		}
	}
}

// wantMainImage wants main containers of this image, as containerd has them.
func (l *Lab) wantMainImage(image string) {
	l.t.Helper()
	list := l.ctr("containers", "ls")
	for i := range 3 {
		if line := lineWith(list, fmt.Sprintf("default.still-%d.main", i)); !strings.Contains(line, image) {
			l.t.Errorf("want %s: %s", image, line)
		}
	}
}

// otherTag is the tool's image by another tag.
func (l *Lab) otherTag(tag string) string {
	l.t.Helper()
	program, err := os.ReadFile(toolBinary)
	if err != nil {
		l.t.Fatal(err)
	}
	archive := l.path(tag + ".tar")
	if err := os.WriteFile(archive, runtimetest.Archive(l.t, "stead.local/tool:"+tag, program, runtimetest.ImageConfig{}), 0o600); err != nil {
		l.t.Fatal(err)
	}
	return archive
}

// An image changes in the lives that are there, one member after the other, and so back; the container beside it, the lives and their
// addresses stay. An agent that is killed in the middle of a change is followed by one that carries it out.
func TestAnImageChangesInPlaceOneMemberAfterTheOther(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.startAll(l.toolArchive(), l.otherTag("2"))
	l.apply("still", inPlace("tool:1", "64Mi", "500m"), "--wait", "--timeout", patience)
	before := l.stills()

	if out := l.apply("still", inPlace("tool:2", "64Mi", "500m"), "--dry-run"); !strings.Contains(out, "in place") {
		t.Errorf("a dry run says %q", out)
	}
	l.apply("still", inPlace("tool:2", "64Mi", "500m"), "--wait", "--timeout", patience)
	now := l.sameLives(before, true)
	inTurn(t, now)
	l.wantMainImage("tool:2")

	t.Log("an image that is nowhere leaves all of it serving")
	l.apply("still", inPlace("none:1", "64Mi", "500m"))
	l.heldByImage("still", "stead.local/none:1")
	l.sameAs(now)

	t.Log("undo goes back in place")
	l.stead("rollout", "undo", "still")
	l.stead("rollout", "status", "still", "--timeout", patience)
	l.sameAs(now)
	l.apply("still", inPlace("tool:1", "64Mi", "500m"), "--wait", "--timeout", patience)
	now = l.sameLives(now, true)
	l.wantMainImage("tool:1")

	t.Log("an agent is killed in the middle of a change")
	l.apply("still", inPlace("tool:2", "64Mi", "500m"))
	l.waitCause("still-2", "NotReady")
	if err := l.agent.signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	l.startAgent()
	l.stead("rollout", "status", "still", "--timeout", patience)
	l.sameLives(now, true)
	l.wantMainImage("tool:2")
}

// sameAs: nothing at all was begun since.
func (l *Lab) sameAs(before [3]still) {
	l.t.Helper()
	for i, now := range l.stills() {
		was := before[i]
		if now.main != was.main || now.beside != was.beside || now.life.Status.Token != was.life.Status.Token || !now.life.Status.Ready {
			judge.Broken(l.t, "%s: %s and %s became %s and %s: %+v", was.life.Status.Name, was.main, was.beside, now.main, now.beside, now.life.Status)
		}
	}
}

// cpu and memory change while the containers run. Where more memory is in use than the new limit allows, the member has a new life in
// its turn.
func TestResourcesChangeInPlaceAndARefusalIsANewLifeInItsTurn(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.startAll(l.toolArchive())
	l.apply("still", inPlace("tool:1", "64Mi", "500m"), "--wait", "--timeout", patience)
	before := l.stills()
	l.wantMain("67108864", "50000")

	l.apply("still", inPlace("tool:1", "96Mi", "750m"), "--wait", "--timeout", patience)
	l.sameLives(before, false)
	l.wantMain("100663296", "75000")

	t.Log("the bounds stay when the agent is restarted, and when a container begins again")
	if err := l.agent.signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	l.startAgent()
	l.sameLives(before, false)
	l.killAtOnce(l.pidsOf("still-0")...)
	l.waitReady("still-0", &before[0].life)
	l.wantMain("100663296", "75000")
	before = l.stills()

	t.Log("a limit below what still-2 uses")
	hog, _, _ := l.background("40 MiB are used", "exec", "still-2", "-c", "main", "--", "/box", "harm", "memory", "40")
	defer hog.Wait()
	l.apply("still", inPlace("tool:1", "32Mi", "750m"), "--wait", "--timeout", patience)
	l.wantMain("33554432", "75000")
	for i, now := range l.stills() {
		if renewed := now.life.Status.Token != before[i].life.Status.Token; renewed != (i == 2) {
			t.Errorf("still-%d has a new life: %v", i, renewed)
		}
	}
	if err := l.steadSays("in place", "get", "events"); err != nil {
		t.Error(err)
	}
}

// wantMain checks what the kernel holds for the main containers: memory, and quota of the processor.
func (l *Lab) wantMain(memory, quota string) {
	l.t.Helper()
	for i := range 3 {
		name := fmt.Sprint("still-", i)
		l.eventually(time.Minute, name+" has its bounds", func() error {
			for _, pid := range l.pidsOf(name) {
				if container, _, first := l.process(pid, name); container != "main" || !first {
					continue
				}
				if got := boundsOf(pid); got != [2]string{memory, quota} {
					return fmt.Errorf("the kernel has %v", got)
				}
				return nil
			}
			return fmt.Errorf("main does not run")
		})
	}
}

// boundsOf are the limits of memory and processor time of a process's cgroup.
func boundsOf(pid int) (found [2]string) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		return found
	}
	for line := range strings.Lines(string(text)) {
		part := strings.SplitN(strings.TrimSpace(line), ":", 3)
		for i, files := range [2][2]string{{"memory" + part[2] + "/memory.limit_in_bytes", part[2] + "/memory.max"}, {"cpu" + part[2] + "/cpu.cfs_quota_us", part[2] + "/cpu.max"}} {
			for _, file := range files {
				if got, err := os.ReadFile("/sys/fs/cgroup/" + file); err == nil && strings.Contains(file, "/main") {
					found[i], _, _ = strings.Cut(strings.TrimSpace(string(got)), " ")
				}
			}
		}
	}
	return found
}
