package e2e

import (
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stead-project/stead/test/judge"
)

// variant is the life set with another template: an environment variable, or an image.
func variant(image, value string) string {
	return strings.Replace(lifeSet, "image: stead.local/tool:1",
		"image: "+image+"\n        env: [{name: VARIANT, value: \""+value+"\"}]", 1)
}

const toolImage = "stead.local/tool:1"

// gap is the time between the last beat of one life and the first of the next. A life
// beats before it can be ready and when it is told to stop, so it was down at no other time.
type gap struct {
	member   string
	from, to int64
}

// gaps are those between two lives of each member, in the order in which they began.
func (l *Lab) gaps(file string) (list []gap) {
	l.t.Helper()
	log, err := os.ReadFile(file)
	if err != nil {
		l.t.Fatal(err)
	}
	type beat struct {
		token string
		at    int64
	}
	last := map[string]beat{}
	for line := range strings.Lines(string(log)) {
		if !strings.HasSuffix(line, "\n") { // it is being written
			break
		}
		var kind, who, token string
		var at int64
		if _, err := fmt.Sscanf(line, "%s %s %s %d", &kind, &who, &token, &at); err != nil {
			l.t.Fatalf("witness line %q: %v", line, err)
		}
		if before, known := last[who]; known && before.token != token {
			list = append(list, gap{strings.TrimPrefix(who, "default/"), before.at, at})
		}
		last[who] = beat{token, at}
	}
	return list
}

func (l *Lab) tokens() map[string]string {
	l.t.Helper()
	out := map[string]string{}
	for _, name := range []string{"life-0", "life-1", "life-2"} {
		out[name] = l.mustMember(name).Status.Token
	}
	return out
}

// heldByImage waits until the update of a set is held up because nodes do not have an image of it.
func (l *Lab) heldByImage(set, image string) {
	l.t.Helper()
	l.eventually(time.Minute, "the update is held up by "+image, func() error {
		if err := l.steadSays("and no member is stopped before: ", "describe", "set", set); err != nil {
			return err
		}
		return l.steadSays(image, "describe", "set", set)
	})
}

func TestAnUpdateRollsInOrderAndABadOneIsLeftByTheFixedFileAlone(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.startAll(l.toolArchive())
	heard := l.startWitness()
	l.apply("life", variant(toolImage, "a"), "--wait", "--timeout", patience)
	first := l.tokens()

	t.Log("an update restarts the members from the highest down, one at a time")
	if out := l.apply("life", variant(toolImage, "b"), "--dry-run"); !strings.Contains(out, "restarts life-2, life-1, life-0 in this order, at most 1 down") {
		t.Errorf("a dry run says %q", out)
	}
	l.apply("life", variant(toolImage, "b"), "--wait", "--timeout", patience)
	var gaps []gap
	l.eventually(time.Minute, "the witness heard each member's next life", func() error {
		gaps = l.gaps(heard)
		if len(gaps) < 3 {
			return fmt.Errorf("lives changed as %+v", gaps)
		}
		return nil
	})
	if len(gaps) != 3 || gaps[0].member != "life-2" || gaps[1].member != "life-1" || gaps[2].member != "life-0" {
		t.Errorf("lives changed as %+v; want life-2, life-1, life-0", gaps)
	}
	for i := 1; i < len(gaps); i++ {
		if gaps[i].from < gaps[i-1].to {
			judge.Broken(t, "%+v and %+v: two members were down at once", gaps[i-1], gaps[i])
		}
	}
	second := l.tokens()
	for name, token := range first {
		if second[name] == token {
			t.Errorf("%s still has token %s", name, token)
		}
	}

	t.Log("a wrong image halts before the first member")
	l.apply("life", variant("stead.local/none:1", "c"))
	l.heldByImage("life", "stead.local/none:1")
	for name, token := range second {
		if m := l.waitReady(name, nil); m.Status.Token != token {
			t.Errorf("%+v; want it ready with token %s", m.Status, token)
		}
	}

	t.Log("going back leaves all alone")
	l.apply("life", variant(toolImage, "b"), "--wait", "--timeout", patience)
	third := l.tokens()
	if !maps.Equal(third, second) {
		judge.Broken(t, "tokens %v; want those of %v", third, second)
	}

	t.Log("the fixed file alone cures a bad update, too")
	l.apply("life", variant("stead.local/none:1", "d"))
	l.heldByImage("life", "stead.local/none:1")
	l.apply("life", variant(toolImage, "d"), "--wait", "--timeout", patience)
	for name, token := range l.tokens() {
		if third[name] == token {
			t.Errorf("%s still has token %s", name, token)
		}
	}

	t.Log("under OnDelete members move on when they are restarted by hand")
	fourth := l.tokens()
	byHand := strings.Replace(variant(toolImage, "e"), "replicas: 3", "replicas: 3\n  updateStrategy: {type: OnDelete}", 1)
	if out := l.apply("life", byHand, "--wait"); !strings.Contains(out, "life-2, life-1, life-0 move on when they are restarted (OnDelete)") {
		t.Errorf("apply says %q", out)
	}
	before := l.mustMember("life-1")
	l.stead("delete", "pod", "life-1")
	after := l.waitReady("life-1", &before)
	if after.Status.Token == before.Status.Token || after.Status.Revision == before.Status.Revision {
		t.Errorf("%+v after a restart, %+v before; want another life on another revision", after.Status, before.Status)
	}
	if now := l.tokens(); now["life-0"] != fourth["life-0"] || now["life-2"] != fourth["life-2"] {
		judge.Broken(t, "tokens %v; want those of %v but for life-1", now, fourth)
	}

	t.Log("rollout verbs: back, and a restart of all")
	l.apply("life", variant(toolImage, "d"), "--wait")
	if back := l.mustMember("life-1"); back.Status.Revision != before.Status.Revision {
		t.Errorf("life-1 runs %s; want %s again", back.Status.Revision, before.Status.Revision)
	}
	old := l.tokens()
	if out := l.stead("rollout", "restart", "life"); !strings.Contains(out, "restarts life-2, life-1, life-0 in this order") {
		t.Errorf("restart says %q", out)
	}
	l.stead("rollout", "status", "life", "--timeout", patience)
	for name, token := range l.tokens() {
		if old[name] == token {
			t.Errorf("%s still has token %s", name, token)
		}
	}
	l.stead("rollout", "undo", "life")
	l.stead("rollout", "status", "life", "--timeout", patience)
	if got := l.mustMember("life-0"); got.Status.Revision != before.Status.Revision {
		t.Errorf("life-0 runs %s after undo; want %s", got.Status.Revision, before.Status.Revision)
	}
	if out := l.stead("rollout", "history", "life"); !strings.Contains(out, before.Status.Revision+"   current") {
		t.Errorf("history says %q; want %s as current", out, before.Status.Revision)
	}
	l.assertOneLife(heard, "life-0", "life-1", "life-2")
}
