// Package runtimetest is the conformance suite of runtime.Runtime: every promise
// of the contract that a caller can see. Both bodies run it.
package runtimetest

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/spec"
)

// Subject is a body under test. Its image runs the program at /box, whose
// arguments say how it behaves:
//
//	run            until SIGTERM, then exits 0
//	stubborn       until SIGKILL
//	exit N         exits with code N at once
//	echo TEXT      prints TEXT and a newline to stdout, exits 0
//	fail TEXT N    prints TEXT and a newline to stderr, exits N
//	cat            copies stdin to stdout until its end, exits 0
//	tty            prints "size COLUMNS ROWS" of its terminal, and again at each
//	               line of stdin; exits 0 at the line "end"
//	chatty MILLIS  prints a line now, and again every MILLIS milliseconds
//	litter         leaves children in the background, exits 0
//	chicks         prints how many of those there are, and a newline
//	ready          exits 0 once the container's run or stubborn minds its signals
type Subject struct {
	Runtime runtime.Runtime
	// Again returns another value over the same host, as a restarted agent has it.
	Again func(t *testing.T) runtime.Runtime
	// Archive holds one image, Image is its name; the suite loads it.
	Archive func() io.Reader
	Image   string
	// LogDir is where logs of the suite's containers may go.
	LogDir string
}

// Box is the path of the program in the image.
const Box = "/box"

// Run runs the suite on the subject that open makes.
func Run(t *testing.T, open func(t *testing.T) Subject) {
	s := &suite{Subject: open(t)}
	images, err := s.Runtime.LoadImage(t.Context(), s.Archive())
	if err != nil {
		t.Fatalf("LoadImage: %v", err)
	}
	if len(images) != 1 || images[0].Name != s.Image || images[0].Digest == "" {
		t.Fatalf("LoadImage returned %+v, want one image %q with a digest", images, s.Image)
	}
	for _, c := range []struct {
		name string
		run  func(*testing.T, *member)
	}{
		{"images are found by name, missing ones are named as such", testImages},
		{"a sandbox belongs to one token", testSandbox},
		{"create refuses what cannot become a life", testCreateRefusals},
		{"a container goes from created over running to exited, once", testLifecycle},
		{"wait tells the exit code", testExitCode},
		{"wait ends with its context and knows the never started", testWait},
		{"a stubborn process ends by SIGKILL", testStubborn},
		{"a command that is not there is a bad spec", testBadCommand},
		{"exec returns code and output", testExec},
		{"exec reads its input to the end", testExecInput},
		{"exec has a terminal that can be resized", testExecTerminal},
		{"a bounded exec leaves nothing and has the container for itself", testExecBounded},
		{"an exec that is alone leaves nothing, and waits for no bounded one", testExecAlone},
		{"empty and kill-all work on the identity alone", testKillAll},
		{"remove kills what is left", testRemoveRunning},
		{"what is used is told of containers that run", testUsage},
		{"a running container gets other bounds, which stay", testResize},
		{"a sandbox is needed to connect to a member", testDial},
		{"the process of a sandbox counts for nothing and ends with it", testSharedSandbox},
		{"what a container leaves among shared processes is seen and killed", testLeft},
		{"a sandbox whose process was killed is made again", testLostSandbox},
		{"a restarted agent finds everything by itself", testAgain},
		{"nothing is done for an ended context", testEndedContext},
	} {
		s.next++
		m := &member{suite: s, id: spec.Identity{Namespace: "suite", Set: "db", Ordinal: s.next}, token: spec.Token{Epoch: 1, Number: int64(s.next)}}
		t.Run(c.name, func(t *testing.T) {
			t.Cleanup(func() { m.clean(t) })
			c.run(t, m)
		})
	}
}

type suite struct {
	Subject
	next int
}

// member is the identity of one test.
type member struct {
	*suite
	id    spec.Identity
	token spec.Token
}

func (m *member) cid(name string) runtime.ContainerID {
	return runtime.ContainerID{ID: m.id, Name: name}
}

func (m *member) container(name string, args ...string) runtime.Container {
	return runtime.Container{
		ID: m.cid(name), Token: m.token, Image: m.Image,
		Command: []string{Box}, Args: args, Hostname: m.id.MemberName(),
		Labels: map[string]string{"test": name},
		Log:    runtime.Log{Dir: m.LogDir + "/" + m.id.MemberName() + "-" + name, FileBytes: 1 << 20, Files: 2},
	}
}

func (m *member) sandbox(t *testing.T) runtime.Sandbox {
	t.Helper()
	s, err := m.Runtime.EnsureSandbox(t.Context(), runtime.Sandbox{ID: m.id, Token: m.token, Hostname: m.id.MemberName()})
	if err != nil {
		t.Fatalf("EnsureSandbox: %v", err)
	}
	return s
}

// started makes sandbox and container and starts it.
func (m *member) started(t *testing.T, name string, args ...string) runtime.ContainerID {
	t.Helper()
	m.sandbox(t)
	return m.startedHere(t, name, args...)
}

// startedHere makes and starts a container in a sandbox that is there.
func (m *member) startedHere(t *testing.T, name string, args ...string) runtime.ContainerID {
	t.Helper()
	c := m.container(name, args...)
	if err := m.Runtime.Create(t.Context(), c); err != nil {
		t.Fatalf("Create: %v", err)
	}
	if err := m.Runtime.Start(t.Context(), c.ID); err != nil {
		t.Fatalf("Start: %v", err)
	}
	m.ready(t, c)
	return c.ID
}

// ready waits until a program that minds signals does.
func (m *member) ready(t *testing.T, c runtime.Container) {
	t.Helper()
	if c.Args[0] != "run" && c.Args[0] != "stubborn" {
		return
	}
	code, err := m.Runtime.Exec(t.Context(), c.ID, runtime.Exec{Command: []string{Box, "ready"}})
	if err != nil || code != 0 {
		t.Fatalf("the container does not get ready: code %d, %v", code, err)
	}
}

func (m *member) wait(t *testing.T, id runtime.ContainerID) runtime.Exit {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	e, err := m.Runtime.Wait(ctx, id)
	if err != nil {
		t.Fatalf("Wait: %v", err)
	}
	return e
}

func (m *member) status(t *testing.T, id runtime.ContainerID) runtime.Status {
	t.Helper()
	s, err := m.Runtime.Status(t.Context(), id)
	if err != nil {
		t.Fatalf("Status: %v", err)
	}
	return s
}

func (m *member) empty(t *testing.T) bool {
	t.Helper()
	ok, err := m.Runtime.Empty(t.Context(), m.id)
	if err != nil {
		t.Fatalf("Empty: %v", err)
	}
	return ok
}

// clean leaves nothing of the member behind and proves it.
func (m *member) clean(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 20*time.Second)
	defer cancel()
	list, err := m.Runtime.List(ctx)
	if err != nil {
		t.Errorf("clean up: List: %v", err)
	}
	for _, s := range list {
		if s.ID.ID == m.id {
			if err := m.Runtime.Remove(ctx, s.ID); err != nil {
				t.Errorf("clean up: Remove: %v", err)
			}
		}
	}
	if err := m.Runtime.RemoveSandbox(ctx, m.id); err != nil {
		t.Errorf("clean up: RemoveSandbox: %v", err)
	}
	if all, err := m.Runtime.Sandboxes(ctx); err != nil || slices.ContainsFunc(all, func(s runtime.Sandbox) bool { return s.ID == m.id }) {
		t.Errorf("clean up: sandbox is left: %+v, err %v", all, err)
	}
}

func wantKind(t *testing.T, what string, err, kind error) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("%s: got %v, want kind %q", what, err, kind)
	}
}

func wantNil(t *testing.T, what string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// ignore is err, unless it is of a kind.
func ignore(err, kind error) error {
	if errors.Is(err, kind) {
		return nil
	}
	return err
}
