package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stead-project/stead/test/judge"
)

// waitCause waits until the member shows the cause.
func (l *Lab) waitCause(name, cause string) member {
	l.t.Helper()
	var m member
	l.eventually(time.Minute, name+" shows "+cause, func() (err error) {
		if m, err = l.member(name); err != nil {
			return err
		}
		if m.Status.Cause != cause || m.Status.Message == "" {
			return fmt.Errorf("%+v", m.Status)
		}
		return nil
	})
	return m
}

// steadSays returns nil when the command line succeeds and prints the word.
func (l *Lab) steadSays(word string, args ...string) error {
	out, err := l.trySteadFor(time.Minute, args...)
	if err != nil || !strings.Contains(out, word) {
		return fmt.Errorf("stead %s: %v, no %q in\n%s", strings.Join(args, " "), err, word, out)
	}
	return nil
}

// lifeWith is the life set with one string replaced.
func lifeWith(old, new string) string {
	if !strings.Contains(lifeSet, old) {
		panic("the life set has no " + old)
	}
	return strings.Replace(lifeSet, old, new, 1)
}

func TestAMissingImageIsShownAndHealsWhenItIsLoaded(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.startAll()
	heard := l.startWitness()
	l.apply("life", lifeSet)
	m := l.waitCause("life-0", "ImageMissing")
	if !strings.Contains(m.Status.Message, "stead.local/tool:1") {
		t.Errorf("the message does not name the image: %q", m.Status.Message)
	}
	l.eventually(time.Minute, "describe tells it, too", func() error { // the set's status follows the member's
		return l.steadSays("ImageMissing", "describe", "set", "life")
	})
	l.stead("image", "load", l.toolArchive())
	for _, name := range []string{"life-0", "life-1", "life-2"} {
		l.waitReady(name, nil)
	}
	l.assertOneLife(heard, "life-0", "life-1", "life-2")
}

func TestBrokenCommandsAreToldAndBackedOff(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.startAll(l.toolArchive())
	l.apply("missing", strings.ReplaceAll(lifeWith("command: [/box, life]", "command: [/no-such-program]"), "life", "missing"))
	m := l.waitCause("missing-0", "StartError")
	if !strings.Contains(m.Status.Message, "/no-such-program") {
		t.Errorf("the message does not name the command: %q", m.Status.Message)
	}
	l.apply("crash", strings.ReplaceAll(lifeWith("command: [/box, life]", "command: [/box, no-such-verb]"), "life", "crash"))
	m = l.waitCause("crash-0", "CrashLoop")
	if !strings.Contains(m.Status.Message, "2") {
		t.Errorf("the message does not tell the exit code: %q", m.Status.Message)
	}
	l.eventually(time.Minute, "what crash-1 waits for is told", func() error { return l.steadSays("crash-1", "explain", "crash") })
	l.waitLog("crash-0", "usage: tool")
}

func TestAVolumeOfAnotherOwnerIsRefused(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.startAll(l.toolArchive())
	foreign := l.path("agent", "volumes", "default", "life", "data-0", "data")
	if err := os.MkdirAll(foreign, 0o755); err != nil {
		t.Fatal(err)
	}
	precious := filepath.Join(foreign, "precious")
	if err := os.WriteFile(precious, []byte("not yours"), 0o600); err != nil {
		t.Fatal(err)
	}
	l.apply("life", lifeSet)
	l.waitCause("life-0", "VolumeOccupied")
	if got, err := os.ReadFile(precious); err != nil || string(got) != "not yours" {
		judge.Broken(t, "the foreign file is %q, %v", got, err)
	}
	if pids := l.pidsOf("life-0"); len(pids) != 0 {
		judge.Broken(t, "life-0 runs: %v", pids)
	}
}

func TestAVolumeThatVanishedIsNotReplacedInSilence(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.startAll(l.toolArchive())
	l.apply("life", lifeSet, "--wait", "--timeout", patience)
	l.stead("scale", "life", "--replicas", "2", "--wait", "--timeout", patience)
	if err := os.RemoveAll(l.path("agent", "volumes", "default", "life", "data-2")); err != nil {
		t.Fatal(err)
	}
	l.stead("scale", "life", "--replicas", "3")
	l.waitCause("life-2", "VolumeMissing")
}

func TestBadManifestsAreRefusedWholeWithLineAndPath(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.startServer()
	file := l.path("bad.yaml")
	text := lifeWith("image: stead.local/tool:1", "imagee: stead.local/tool:1") + "---\nkind: Job\napiVersion: batch/v1\nmetadata: {name: x}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := l.trySteadFor(time.Minute, "apply", "-f", file)
	if err == nil {
		t.Fatalf("applied:\n%s", out)
	}
	for _, want := range []string{file + ":", "spec.template.spec.containers[0].imagee", `did you mean "image"`, "Job"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}
	if left := l.stead("get", "services"); !strings.Contains(left, "no services") {
		t.Errorf("half applied:\n%s", left)
	}
	truncated := l.path("truncated.yaml")
	if err := os.WriteFile(truncated, []byte(lifeSet[:len(lifeSet)/2]+"\n\xff\xfe: ["), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := l.trySteadFor(time.Minute, "apply", "-f", truncated); err == nil || !strings.Contains(out, truncated+":") {
		t.Errorf("truncated file: %v\n%s", err, out)
	}
}
