package e2e

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stead-project/stead/store/etcdembed"
)

// A store that is started warm holds ConfigMaps, applied so many at a time.
const (
	configs   = 500
	configsAt = 100
)

// BenchmarkDev is `stead dev`, from the start of its process: cold on an empty
// directory, warm on one with three members and some data. "serving" is when the
// first Apply was answered, which was sent as soon as the socket answered; "action"
// is when the first member's record stood. etcd is the embedded store alone, in
// this process, on the same data: the floor.
func BenchmarkDev(b *testing.B) {
	l := newLab(b)
	l.ownStore()
	b.Run("Cold", func(b *testing.B) { l.benchDev(b, true) })
	l.startDev()
	l.eventually(30*time.Second, "the image is loaded", func() error {
		out, err := l.trySteadFor(time.Minute, "image", "load", l.toolArchive())
		if err != nil { // the node is not connected yet
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
	c := l.dial(b)
	for from := 0; from < configs; from += configsAt {
		c.apply(manyConfigs(from))
	}
	c.apply(fmt.Sprintf(benchSet, "rest", "Parallel", 3))
	c.until("rest", ready(3))
	b.Run("Warm", func(b *testing.B) { l.benchDev(b, false) })
	l.startDev()
	l.dial(b).until("rest", ready(3))
	b.Run("Idle", func(b *testing.B) { l.reportIdle(b, map[string]*process{"dev": l.agent}) })
}

// benchDev starts `stead dev` again and again; fresh: on nothing.
func (l *Lab) benchDev(b *testing.B, fresh bool) {
	var serving, action, etcd time.Duration
	for range rounds {
		l.stopDev()
		if fresh {
			l.forgetAll()
		}
		etcd += l.etcdAlone(b, fresh)
		began := time.Now()
		l.startDev()
		c := l.dial(b)
		c.apply(fmt.Sprintf(benchSet, "first", "OrderedReady", 1))
		serving += time.Since(began)
		c.until("first", func(members []member) bool { return len(members) == 1 && members[0].Status.Token != "" })
		action += time.Since(began)
		c.remove("first")
	}
	l.stopDev()
	reportMean(b, serving, "serving-ms")
	reportMean(b, action, "action-ms")
	reportMean(b, etcd, "etcd-ms")
}

// startDev starts server and agent in one process, in place of the one before, and
// returns as soon as the socket takes connections.
func (l *Lab) startDev() {
	l.t.Helper()
	l.stopDev()
	l.agent = l.start("dev", steadBinary, "dev", "--root", l.Dir, "--socket", l.Socket, "--run-dir", l.path("run"),
		"--node", l.nodeName(), "--containerd", l.containerdSocket())
	for deadline := time.Now().Add(30 * time.Second); !alive(l.Socket); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			l.t.Fatalf("stead dev does not listen\n%s", l.logs())
		}
	}
}

func (l *Lab) stopDev() {
	l.t.Helper()
	end(l.t, l.agent)
}

// forgetAll makes the lab's host as it was before the first start.
func (l *Lab) forgetAll() {
	l.t.Helper()
	if _, err := os.Stat(l.path("agent")); err != nil {
		return
	}
	l.run("nsenter", append([]string{"--net=/run/netns/" + l.Name, steadBinary, "agent", "purge"}, l.agentFlags()...)...)
	for _, dir := range []string{"server", "agent", "run"} {
		if err := os.RemoveAll(l.path(dir)); err != nil {
			l.t.Fatal(err)
		}
	}
}

// etcdAlone is how long the embedded store takes to serve, on nothing or on the
// lab's data.
func (l *Lab) etcdAlone(b *testing.B, fresh bool) time.Duration {
	dir := l.path("server", "etcd")
	if fresh {
		dir = l.path("alone")
		defer os.RemoveAll(dir)
	}
	ctx, cancel := context.WithTimeout(b.Context(), 30*time.Second)
	defer cancel()
	began := time.Now()
	e, err := etcdembed.Start(ctx, etcdembed.Config{Dir: dir, Name: "stead"})
	if err != nil {
		b.Fatal(err)
	}
	took := time.Since(began)
	if err := e.Close(); err != nil {
		b.Fatal(err)
	}
	return took
}

// manyConfigs is a manifest of ConfigMaps of 1 KiB, the first numbered from.
func manyConfigs(from int) string {
	var out strings.Builder
	for i := from; i < from+configsAt; i++ {
		fmt.Fprintf(&out, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c%d}\ndata: {text: %s}\n---\n", i, strings.Repeat("x", 1024))
	}
	return out.String()
}
