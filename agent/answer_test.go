package agent

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/proto/wire"
	"github.com/stead-project/stead/records"
)

func TestAnImageLoadedLaterHealsAMember(t *testing.T) {
	box(t, func(t *testing.T, n *node) {
		n.host.OnPull(func(string, string) error { return runtime.ErrImageMissing })
		n.script.say(wanted(10, n.life(5, records.GoalRun)))
		n.want("image missing", tok(5), func(r records.Report) bool { return r.Cause == "ImageMissing" })
		n.script.say(&proto.ToNode{Kind: &proto.ToNode_Ask{Ask: &proto.Ask{Id: "a1", Kind: &proto.Ask_ImageLoad{ImageLoad: &proto.ImageLoadAsk{}}}}})
		tunnel := <-n.script.tunnels
		if f, err := tunnel.Recv(); err != nil || f.GetAsk() != "a1" {
			t.Fatalf("first frame: got %v, %v", f, err)
		}
		must(t, tunnel.Send(&proto.Frame{Data: []byte("img:1")}))
		must(t, tunnel.Send(&proto.Frame{Data: []byte("\n"), Done: true}))
		f, err := tunnel.Recv()
		must(t, err)
		if !f.GetDone() || f.GetError() != "" || len(decode[[]runtime.Image](t, f.GetData())) != 1 {
			t.Fatalf("last frame: got %v", f)
		}
		n.wantReady(tok(5))
	})
}

func TestLogsAreAnswered(t *testing.T) {
	box(t, func(t *testing.T, n *node) {
		dir := filepath.Join(n.root, "logs", "default", "db-0", "db", "1.5.0")
		must(t, os.MkdirAll(dir, 0o755))
		must(t, os.WriteFile(filepath.Join(dir, "0.log"), []byte("2026-11-21T12:00:00Z stdout hello\n"), 0o600))
		ask := func(container string) (text, fail string) {
			n.script.say(&proto.ToNode{Kind: &proto.ToNode_Ask{Ask: &proto.Ask{Id: "l", Kind: &proto.Ask_Logs{Logs: &proto.LogsAsk{
				Member: wire.Identity(db0), Container: container, Tail: -1,
			}}}}})
			tunnel := <-n.script.tunnels
			for {
				f, err := tunnel.Recv()
				must(t, err)
				text += string(f.GetData())
				if f.GetDone() {
					return text, f.GetError()
				}
			}
		}
		if text, fail := ask("db"); text != "hello\n" || fail != "" {
			t.Errorf("logs: got %q, %q", text, fail)
		}
		if text, fail := ask("../../db"); text != "" || fail == "" {
			t.Errorf("a path in the name: got %q, %q", text, fail)
		}
	})
}
