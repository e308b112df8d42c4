package manifest

import (
	"fmt"
	"slices"
	"strings"
)

// reason is why objects are left out; each has one line of the summary.
type reason int

// The reasons, in the order of the summary.
const (
	noUse reason = iota
	helmTest
	asked
	nodesClass
	noAPI
	reasons // how many there are
)

// leftOut gathers the objects that Parse leaves out: by reason, their names by kind, in order.
type leftOut [reasons][]leftKind

type leftKind struct {
	kind  string
	names []string
}

func (l *leftOut) add(why reason, kind, name string) {
	i := slices.IndexFunc(l[why], func(k leftKind) bool { return k.kind == kind })
	if i < 0 {
		i = len(l[why])
		l[why] = append(l[why], leftKind{kind: kind})
	}
	l[why][i].names = append(l[why][i].names, name)
}

// summary is one line for each reason; sets: there are sets whose members may miss what the
// objects would do.
func (l *leftOut) summary(sets bool) (lines []Problem) {
	if !sets {
		l[noUse], l[noAPI] = append(l[noUse], l[noAPI]...), nil
	}
	say := func(why reason, format, fix string) {
		if len(l[why]) > 0 {
			lines = append(lines, Problem{What: fmt.Sprintf(format, l.objects(why)), Fix: fix})
		}
	}
	say(noUse, "skipped, as they change nothing here: %s", "")
	say(helmTest, "skipped, as 'helm install' does, tests: %s", "")
	say(asked, "skipped (--skip-unsupported): %s", "")
	say(nodesClass, "skipped: %s", "declare storage classes on the nodes with --storage-class, or map their names on the server with --map-class")
	say(noAPI, "skipped: %s", "members get no token and there is no Kubernetes API: software that looks there for its peers or its leader does not find them")
	return lines
}

// objects names what is left out for a reason, of each kind a few.
func (l *leftOut) objects(why reason) string {
	const most = 3
	kinds := make([]string, 0, len(l[why]))
	for _, k := range l[why] {
		var names []string
		for _, name := range k.names[:min(most, len(k.names))] {
			if name != "" {
				names = append(names, showKey(name))
			}
		}
		text := strings.TrimSpace(showKey(k.kind) + " " + strings.Join(names, ", "))
		if more := len(k.names) - most; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		kinds = append(kinds, text)
	}
	return strings.Join(kinds, "; ")
}
