package e2e

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"testing"
)

// variant is the life set with another template: an environment variable, or an image.
func variant(image, value string) string {
	return strings.Replace(lifeSet, "image: stead.local/tool:1",
		"image: "+image+"\n        env: [{name: VARIANT, value: \""+value+"\"}]", 1)
}

const toolImage = "stead.local/tool:1"

// gap is the time between the last beat of one life and the first of the next.
type gap struct {
	member   string
	from, to int64
}

// gaps are those between two lives of each member, in the order in which they began.
func (l *Lab) gaps(file string) (list []gap) {
	l.t.Helper()
	f, err := os.Open(file)
	if err != nil {
		l.t.Fatal(err)
	}
	defer f.Close()
	type beat struct {
		token string
		at    int64
	}
	last := map[string]beat{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var kind, who, token string
		var at int64
		if _, err := fmt.Sscanf(lines.Text(), "%s %s %s %d", &kind, &who, &token, &at); err != nil {
			l.t.Fatalf("witness line %q: %v", lines.Text(), err)
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

func TestAnUpdateRollsInOrderAndABadOneIsLeftByTheFixedFileAlone(t *testing.T) {
	l := newLab(t)
	l.startAll(l.toolArchive())
	heard := l.startWitness()
	l.apply("life", variant(toolImage, "a"), "--wait", "--timeout", "2m")
	first := l.tokens()

	t.Log("an update restarts the members from the highest down, one at a time")
	if out := l.apply("life", variant(toolImage, "b"), "--dry-run"); !strings.Contains(out, "restarts life-2, life-1, life-0 in this order, at most 1 down") {
		t.Errorf("a dry run says %q", out)
	}
	l.apply("life", variant(toolImage, "b"), "--wait", "--timeout", "2m")
	gaps := l.gaps(heard)
	if len(gaps) != 3 || gaps[0].member != "life-2" || gaps[1].member != "life-1" || gaps[2].member != "life-0" {
		t.Errorf("lives changed as %+v; want life-2, life-1, life-0", gaps)
	}
	for i := 1; i < len(gaps); i++ {
		if gaps[i].from < gaps[i-1].to {
			t.Errorf("%+v and %+v: two members were down at once", gaps[i-1], gaps[i])
		}
	}
	second := l.tokens()
	for name, token := range first {
		if second[name] == token {
			t.Errorf("%s still has token %s", name, token)
		}
	}

	t.Log("a wrong image halts at the first member")
	l.apply("life", variant("stead.local/none:1", "c"))
	l.waitCause("life-2", "ImageMissing")
	for _, name := range []string{"life-0", "life-1"} {
		if m := l.mustMember(name); !m.Status.Ready || m.Status.Token != second[name] {
			t.Errorf("%+v; want it ready with token %s", m.Status, second[name])
		}
	}

	t.Log("going back leaves alone whom the update did not reach")
	l.apply("life", variant(toolImage, "b"), "--wait", "--timeout", "2m")
	third := l.tokens()
	if third["life-0"] != second["life-0"] || third["life-1"] != second["life-1"] || third["life-2"] == second["life-2"] {
		t.Errorf("tokens %v; want those of %v but for life-2", third, second)
	}

	t.Log("the fixed file alone cures a bad update, too")
	l.apply("life", variant("stead.local/none:1", "d"))
	l.waitCause("life-2", "ImageMissing")
	l.apply("life", variant(toolImage, "d"), "--wait", "--timeout", "2m")
	for name, token := range l.tokens() {
		if third[name] == token {
			t.Errorf("%s still has token %s", name, token)
		}
	}
	l.assertOneLife(heard, "life-0", "life-1", "life-2")
}
