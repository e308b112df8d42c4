package worker

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stead-project/stead/agent/files"
	"github.com/stead-project/stead/agent/logs"
	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/agent/runtime/fakert"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

// configured is a life with the ConfigMap etc as a volume.
func configured(l *records.Life) {
	l.Template.Spec.Volumes = append(l.Template.Spec.Volumes,
		spec.VolumeMedia{Name: "etc", ConfigMap: &spec.ConfigMapVolume{Name: "etc"}})
}

// apply gives the ConfigMap etc one key; an empty text deletes it.
func (n *node) apply(text string) {
	f := records.Files{Kind: files.KindConfigMap, Namespace: "default", Name: "etc", Absent: text == ""}
	if text != "" {
		f.Content = map[string]scalar.Bytes{"run.sh": scalar.Bytes(text)}
	}
	n.book.Put(true, []records.Files{f})
	if n.w != nil {
		n.w.FilesChanged()
	}
}

func TestARepairedConfigMapEndsTheBackOff(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		n.host.OnStart(func(runtime.Container) fakert.Behaviour { return fakert.Behaviour{Exits: true, Code: 127} })
		n.apply("nast-server")
		n.run()
		n.w.Tell(with(life(5, records.GoalRun), configured))
		time.Sleep(20 * time.Minute)
		n.wantLast("crash loop", func(r records.Report) bool { return r.Cause == "CrashLoop" })
		n.w.FilesChanged() // of something else: the loop goes on as before
		before := len(n.host.Starts(db0))
		time.Sleep(time.Second)
		if got := len(n.host.Starts(db0)); got != before {
			t.Fatalf("%d starts although nothing of it changed", got-before)
		}

		n.host.OnStart(nil)
		n.apply("nats-server")
		time.Sleep(5 * time.Second)
		n.wantReady()
		script, err := os.ReadFile(filepath.Join(files.At(n.w.c.RunDir, db0).Media, "etc", "run.sh"))
		must(t, err)
		if string(script) != "nats-server" {
			t.Errorf("it was started with %q", script)
		}
	})
}

func TestAContainerStartsAgainWithTheFilesItHasAfterItsConfigMapWasDeleted(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		n.apply("nats-server")
		n.run()
		n.w.Tell(with(life(5, records.GoalRun), configured))
		n.wantReady()
		n.apply("")
		time.Sleep(time.Minute)
		n.wantLast("ready, and what is gone is named", func(r records.Report) bool {
			return r.Ready && r.Cause == "ConfigGone" && strings.Contains(r.Message, "keeps the files that it has")
		})
		n.host.Exit(cid, runtime.Exit{Code: 1})
		time.Sleep(time.Minute)
		n.wantReady()
		n.wantStarts(tok(5), 2)

		n.kill()
		n.run() // an agent after this one knows it, too
		n.host.Exit(cid, runtime.Exit{Code: 1})
		time.Sleep(time.Minute)
		n.wantReady()
		n.wantStarts(tok(5), 3)

		n.apply("nats-server -js")
		time.Sleep(time.Minute)
		n.wantLast("no cause any more", func(r records.Report) bool { return r.Ready && r.Cause == "" })

		n.apply("")
		n.w.Tell(with(life(5, records.GoalStop), configured))
		time.Sleep(time.Minute)
		n.w.Tell(with(life(6, records.GoalRun), configured))
		time.Sleep(time.Minute)
		n.wantLast("a new life waits", func(r records.Report) bool { return r.Token == tok(6) && r.Cause == "ConfigMissing" })
		n.wantStarts(tok(6), 0)
	})
}

func TestACrashLoopNamesTheContainersLastLine(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		n.host.OnStart(func(c runtime.Container) fakert.Behaviour {
			w := logs.NewWriter(logs.Config{Dir: c.Log.Dir, Run: logs.RunName(c.Token.Epoch, c.Token.Number, c.Attempt), FileBytes: 1 << 20, Files: 2})
			must(t, w.Copy("stderr", strings.NewReader("starting\nconfig: no such key \"prot\" \x1b[31m\n")))
			w.Close()
			return fakert.Behaviour{Exits: true, Code: 2}
		})
		n.run()
		n.w.Tell(life(5, records.GoalRun))
		time.Sleep(10 * time.Minute)
		want := `container db: exited with code 2; its last line: "config: no such key \"prot\" \x1b[31m", `
		n.wantLast("the last line", func(r records.Report) bool {
			return r.Cause == "CrashLoop" && strings.HasPrefix(r.Message, strings.Replace(want, "container db", "container "+cid.Name, 1))
		})
	})
}
