package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stead-project/stead/test/judge"
)

// ctr runs containerd's own client in the namespace of the lab's node.
func (l *Lab) ctr(args ...string) string {
	l.t.Helper()
	var doc struct{ Cluster string }
	b, err := os.ReadFile(l.path("agent", "node.json"))
	if err == nil {
		err = json.Unmarshal(b, &doc)
	}
	if err != nil {
		l.t.Fatal(err)
	}
	ours := fmt.Sprintf("stead-%.8s-%s", doc.Cluster, l.nodeName())
	return l.run("ctr", append([]string{"--address", l.containerdSocket(), "--namespace", ours}, args...)...)
}

func TestAnImageRemovedUnderARunningSetIsNamedAndHealsWhenLoaded(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.startAll(l.toolArchive())
	heard := l.startWitness()
	l.apply("life", lifeSet, "--wait", "--timeout", patience)
	for what, remove := range map[string]func(){
		"the name, and all with it": func() { l.ctr("image", "rm", "--sync", "stead.local/tool:1") },
		"the content alone": func() {
			l.ctr(append([]string{"content", "rm"}, strings.Fields(l.ctr("content", "ls", "-q"))...)...)
		},
	} {
		t.Run(what, func(t *testing.T) {
			before := map[string]member{}
			for _, name := range []string{"life-0", "life-1", "life-2"} {
				before[name] = l.waitReady(name, nil)
			}
			pids := fmt.Sprint(l.pidsOf("life-0"))
			remove()
			l.killMember("life-1") // restarts in place
			m := l.waitCause("life-1", "ImageMissing")
			for _, want := range []string{"stead.local/tool:1", "stead image load"} {
				if !strings.Contains(m.Status.Message, want) {
					t.Errorf("the message does not say %q: %s", want, m.Status.Message)
				}
			}
			l.eventually(time.Minute, "describe tells it", func() error { return l.steadSays("ImageMissing", "describe", "member", "life-1") })
			if now := fmt.Sprint(l.pidsOf("life-0")); now != pids {
				judge.Broken(t, "life-0's processes changed from %s to %s", pids, now)
			}
			l.stead("image", "load", l.path("tool.tar"))
			was := before["life-1"]
			if now := l.waitReady("life-1", &was); now.Status.Token != was.Status.Token || now.Status.Address != was.Status.Address {
				judge.Broken(t, "life-1 is %+v, was %+v", now.Status, was.Status)
			}
		})
	}
	t.Log("a new life says the same")
	l.ctr("image", "rm", "--sync", "stead.local/tool:1")
	l.stead("restart", "life-2")
	l.waitCause("life-2", "ImageMissing")
	l.stead("image", "load", l.path("tool.tar"))
	l.waitReady("life-2", nil)
	l.assertOneLife(heard, "life-0", "life-1", "life-2")
}
