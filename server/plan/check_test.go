package plan

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/hooks"
)

// brief writes a plan as words: what it does, then who waits and why.
func brief(p Plan) string {
	var words []string
	for _, a := range p.Actions {
		switch a := a.(type) {
		case AddRevision:
			words = append(words, "revision="+string(a.Revision.Hash))
		case Start:
			words = append(words, fmt.Sprintf("start=%d/%s@%s", a.Member.ID.Ordinal, a.Member.Reason, a.Member.Node))
			if a.Member.Revision != "h1" {
				words[len(words)-1] += "/" + string(a.Member.Revision)
			}
		case RaiseRevision:
			words = append(words, fmt.Sprintf("raise=%s/%d", a.Revision.Hash, a.Revision.Number))
		case PruneRevision:
			words = append(words, "prune="+string(a.Hash))
		case Stop:
			words = append(words, fmt.Sprintf("stop=%d/%s", a.ID.Ordinal, a.Reason))
			if len(a.Volumes) > 0 {
				words[len(words)-1] += "+" + fates(a.Volumes)
			}
		case Forget:
			words = append(words, fmt.Sprintf("forget=%d", a.ID.Ordinal))
			if a.FreeAddress {
				words[len(words)-1] += "+address"
			}
			if a.Gone != nil {
				words[len(words)-1] += "+gone"
			}
		case OrderHook:
			kind := hooks.HookKind("none")
			if a.Hook != nil {
				kind = a.Hook.Kind
			}
			words = append(words, fmt.Sprintf("hook=%d/%s", a.ID.Ordinal, kind))
		case PutJobs, OrderJob:
			words = append(words, briefJobs(a))
		case Forgotten:
			words = append(words, fmt.Sprintf("told=%d", a.Identity.ID.Ordinal))
			if !a.Token.IsZero() {
				words[len(words)-1] += fmt.Sprintf("/%d", a.By.Ordinal)
			}
		case MarkReady:
			words = append(words, fmt.Sprintf("ready=%d", a.Identity.ID.Ordinal))
		case MarkBootstrapped:
			words = append(words, "bootstrapped")
			if a.Inherited {
				words[len(words)-1] = "inherited"
			}
		case ForgetBootstrapped:
			words = append(words, "forgotten")
		case SetVolumes:
			words = append(words, "set="+fates(a.Volumes))
		case DropVolume:
			words = append(words, fmt.Sprintf("drop=%d", a.ID.Ordinal))
			if a.FreeAddress {
				words[len(words)-1] += "+address"
			}
		case RestoreVolume:
			words = append(words, fmt.Sprintf("restore=%d", a.Volume.ID.Ordinal))
		case LeaveVolume:
			words = append(words, fmt.Sprintf("leave=%d@%s", a.Left.ID.Ordinal, a.Left.Node))
		case VoidRequest:
			words = append(words, fmt.Sprintf("void=%d", a.ID.Ordinal))
		case RemoveSet:
			words = append(words, "remove")
		case BeginMove:
			words = append(words, fmt.Sprintf("begin=%d@%s", a.Move.ID.Ordinal, a.Move.To.Node))
		case AdvanceMove:
			words = append(words, fmt.Sprintf("move=%d/%s", a.Move.ID.Ordinal, a.Move.Phase))
		case FlipMove:
			words = append(words, fmt.Sprintf("flip=%d@%s", a.Move.ID.Ordinal, a.Move.To.Node))
		case BackMove:
			words = append(words, fmt.Sprintf("back=%d@%s", a.Move.ID.Ordinal, a.Move.From.Node))
			if len(a.Left) > 0 {
				words[len(words)-1] += "+left"
			}
		case ForwardMove:
			words = append(words, fmt.Sprintf("forward=%d@%s", a.Move.ID.Ordinal, a.Move.To.Node))
			if len(a.Left) > 0 {
				words[len(words)-1] += "+left"
			}
		case EndMove:
			words = append(words, fmt.Sprintf("end=%d", a.Move.ID.Ordinal))
			if len(a.Left) > 0 {
				words[len(words)-1] += "+left"
			}
		case VoidMoveRequest:
			words = append(words, fmt.Sprintf("void-move=%d", a.ID.Ordinal))
		default:
			words = append(words, fmt.Sprintf("%T", a))
		}
	}
	words = append(words, "|")
	for _, b := range p.Blocked {
		words = append(words, fmt.Sprintf("%d:%s", b.ID.Ordinal, b.Reason))
	}
	return strings.Join(words, " ")
}

// fates are volumes with their new fate: 2/Delete,1/Keep.
func fates(volumes []records.Volume) string {
	var words []string
	for _, v := range volumes {
		words = append(words, fmt.Sprintf("%d/%s", v.ID.Ordinal, v.Fate))
	}
	return strings.Join(words, ",")
}

// check plans each world and compares the brief. What holds for every plan is
// checked, too: a reason on each action, a sentence for each member that waits.
func check(t *testing.T, cases []rule) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := world(t, c.world)
			if c.change != nil {
				c.change(&w)
			}
			before := fmt.Sprintf("%+v", string(encode(t, w)))
			p := Next(w)
			if got := brief(p); got != c.want {
				t.Errorf("world %s\ngot  %s\nwant %s", c.world, got, c.want)
			}
			if after := fmt.Sprintf("%+v", string(encode(t, w))); before != after {
				t.Errorf("Next changed the world it was given\nbefore %s\nafter  %s", before, after)
			}
			explained(t, w, p)
			if w.Set != nil {
				new(folder).check(t, w)
			}
			if got := texts(p); !strings.Contains(got, c.says) {
				t.Errorf("world %s\nsays %s\nwant %s", c.world, got, c.says)
			}
			w.Now = w.Now.Add(24 * time.Hour)
			if got := brief(Next(w)); got != c.want {
				t.Errorf("by a clock a day ahead: %s", got)
			}
		})
	}
}

// rule is a world and what Next decides: want is the brief, and says, if given, stands
// in the text of an action or of a member that waits.
type rule struct {
	name, world, want, says string
	change                  func(*World)
}

// texts are the sentences of a plan, a line each.
func texts(p Plan) string {
	var lines []string
	for _, a := range p.Actions {
		switch a := a.(type) {
		case Start:
			lines = append(lines, a.Text)
		case Stop:
			lines = append(lines, a.Text)
		case Forget:
			lines = append(lines, a.Text)
		case OrderHook:
			lines = append(lines, a.Text)
		case PutJobs:
			lines = append(lines, a.Text)
		case OrderJob:
			lines = append(lines, a.Text)
		case SetVolumes:
			lines = append(lines, a.Text)
		case AdvanceMove:
			lines = append(lines, a.Text)
		case VoidMoveRequest:
			lines = append(lines, a.Text)
		case DropVolume:
			lines = append(lines, a.Text)
		case VoidRequest:
			lines = append(lines, a.Text)
		}
	}
	for _, b := range p.Blocked {
		lines = append(lines, b.ID.MemberName()+": "+b.Text)
	}
	return strings.Join(lines, "\n")
}

// explained fails when an action has no reason or a waiting member no sentence.
func explained(t *testing.T, w World, p Plan) {
	t.Helper()
	told := map[int]bool{}
	for _, b := range p.Blocked {
		if b.Reason == "" || b.Text == "" || told[b.ID.Ordinal] {
			t.Errorf("blocked %+v; want one word and one sentence, once", b)
		}
		told[b.ID.Ordinal] = true
	}
	for _, a := range p.Actions {
		switch a := a.(type) {
		case Start:
			if a.Text == "" || a.Member.Reason == "" || a.Member.Token.IsZero() || a.Identity.LastToken != a.Member.Token {
				t.Errorf("start %+v; want text, reason and one token", a)
			}
		case Stop:
			if a.Text == "" || a.Reason == "" || a.Token.IsZero() {
				t.Errorf("stop %+v; want text, reason and token", a)
			}
		case Forget:
			if a.Text == "" || a.Token.IsZero() {
				t.Errorf("forget %+v; want text and token", a)
			}
		}
	}
	for _, m := range p.Status.Members {
		if w.Set.Range().Has(m.Ordinal) && !w.Set.Deleting && !m.Ready && m.Blocked == "" {
			t.Errorf("member %s is not ready and nothing says why", m.Name)
		}
	}
}

// encode is all of a world that Next must not change.
func encode(t *testing.T, w World) []byte {
	t.Helper()
	b, err := json.Marshal([]any{w.Set, w.Status, w.Revisions, w.Slots, w.Nodes, w.Free, w.Jobs})
	if err != nil {
		t.Fatal(err)
	}
	return b
}
