package worker

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stead-project/stead/agent/files"
	"github.com/stead-project/stead/agent/logs"
	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/agent/runtime/fakert"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
)

func TestTroubleIsNamedAndHeals(t *testing.T) {
	withEnv := func(l *records.Life) {
		l.Template.Spec.Containers[0].EnvFrom = []spec.EnvFromSource{{ConfigMapRef: &spec.NameRef{Name: "etc"}}}
	}
	fail := func(op string, err error) (func(*node), func(*node)) {
		return func(n *node) {
			n.host.OnCall(func(_ context.Context, c fakert.Call) error {
				if c.Op == op {
					return err
				}
				return nil
			})
		}, func(n *node) { n.host.OnCall(nil) }
	}
	callCase := func(name, op string, err error, cause causes.Cause, heal time.Duration) (string, func(*node), func(*node), func(*records.Life), causes.Cause, time.Duration) {
		breakIt, mend := fail(op, err)
		return name, breakIt, mend, nil, cause, heal
	}
	type test struct {
		name          string
		breakIt, mend func(*node)
		life          func(*records.Life)
		cause         causes.Cause
		heal          time.Duration
	}
	of := func(name string, b, m func(*node), l func(*records.Life), cause causes.Cause, heal time.Duration) test {
		return test{name, b, m, l, cause, heal}
	}
	tests := []test{
		{"an image is missing until it is loaded", func(n *node) {
			n.host.OnPull(func(string, string) error { return runtime.ErrImageMissing })
		}, func(n *node) { n.host.AddImage("img:1"); n.w.ImagesChanged() }, nil, causes.ImageMissing, 0},
		{"a pull fails for a while", func(n *node) {
			n.host.OnPull(func(string, string) error { return runtime.ErrImagePull })
		}, func(n *node) { n.host.OnPull(nil) }, nil, causes.ImagePull, 6 * time.Minute},
		{"a ConfigMap is missing until it is applied", func(n *node) {
			n.book.Put(true, []records.Files{{Kind: files.KindConfigMap, Namespace: "default", Name: "etc", Absent: true}})
		}, func(n *node) {
			n.book.Put(true, []records.Files{{Kind: files.KindConfigMap, Namespace: "default", Name: "etc"}})
			n.w.FilesChanged()
		}, withEnv, "ConfigMissing", 0},
		{"nothing starts before the set's picture is known", func(n *node) { n.setPicture(false) },
			func(n *node) { n.setPicture(true); n.sets.Changed(anySet) }, nil, "ConfigMissing", 0},
		of(callCase("a volume is another's", "Ensure", runtime.ErrForeign, causes.VolumeForeign, time.Minute)),
		of(callCase("a volume is gone", "Ensure", runtime.ErrAbsent, causes.VolumeMissing, time.Minute)),
		of(callCase("a disk is not mounted", "Ensure", runtime.ErrNotFound, causes.DiskMissing, time.Minute)),
		of(callCase("the network fails", "Attach", errors.New("no link"), causes.NetworkError, time.Minute)),
		of(callCase("the sandbox fails", "EnsureSandbox", errors.New("no namespace"), causes.SandboxError, time.Minute)),
		of(callCase("the container is refused", "Create", runtime.ErrBadSpec, causes.StartError, time.Minute)),
		of(callCase("the runtime is away", "Create", runtime.ErrUnavailable, "RuntimeUnavailable", time.Minute)),
		{"the command is not found", func(n *node) {
			n.host.OnStart(func(runtime.Container) fakert.Behaviour {
				return fakert.Behaviour{StartErr: runtime.ErrBadSpec}
			})
		}, func(n *node) { n.host.OnStart(nil) }, nil, causes.StartError, 6 * time.Minute},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNode(t)
				c.breakIt(n)
				n.run()
				l := life(5, records.GoalRun)
				if c.life != nil {
					c.life(&l)
				}
				n.w.Tell(l)
				time.Sleep(time.Minute)
				n.wantLast(string(c.cause), func(r records.Report) bool { return r.Cause == c.cause && r.Message != "" && !r.Ready })
				n.wantStarts(tok(5), 0)
				c.mend(n)
				time.Sleep(c.heal)
				n.wantReady()
				n.wantStarts(tok(5), 1)
			})
		})
	}
}

func (n *node) setPicture(known bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.picture = known
}

func TestALoggerThatIsGoneIsTold(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		n.run()
		n.w.Tell(life(5, records.GoalRun))
		n.wantReady()
		config := logs.Config{Dir: filepath.Join(n.dir, "logs", "default", "db-0", cid.Name), Run: logs.RunName(tok(5).Epoch, tok(5).Number, 0)}
		logger := logs.NewWriter(config)
		time.Sleep(2 * time.Minute)
		n.wantLast("no trouble", func(r records.Report) bool { return r.Ready && r.Cause == "" })
		logger.Close() // as its death does, this lets go of the lock
		time.Sleep(2 * time.Minute)
		n.wantLast("ready, and what it writes is lost", func(r records.Report) bool { return r.Ready && r.Cause == causes.LogLost })
		logger = logs.NewWriter(config)
		defer logger.Close()
		time.Sleep(2 * time.Minute)
		n.wantLast("no trouble any more", func(r records.Report) bool { return r.Ready && r.Cause == "" })
		n.wantStarts(tok(5), 1)
	})
}
