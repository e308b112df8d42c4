package plan

import (
	"slices"
	"testing"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// promoted plays the first step of a world whose revision h2 has these differences (see differences), and h1 none.
func promoted(t *testing.T, line string, differs ...string) Plan {
	t.Helper()
	w := world(t, line)
	w.Nodes = slices.Clone(w.Nodes)
	for i := range w.Nodes {
		w.Nodes[i].Labels = map[string]string{"disk": "ssd"}
	}
	w.Set.Spec.Members = differences(t, differs)
	for _, r := range w.Revisions {
		if r.Hash == "h2" {
			r.Members = w.Set.Spec.Members
		}
	}
	return Next(w)
}

func TestMembersThatRunTheSameReachARevisionAsTheyAre(t *testing.T) {
	const all = "0:ready 1:ready 2:ready"
	for _, tc := range []struct {
		name, world string
		differs     []string
		reach       []int // who does
		written     []string
	}{
		{"who does not differ", "ordered 3 n1 update=h2 current=h1 " + all, []string{"1", "ssd"}, []int{0, 2}, nil},
		{"all, when one differs that is not there", "parallel 3 n1 update=h2 current=h1 " + all, []string{"7", "ssd"}, []int{0, 1, 2}, nil},
		{"nobody without a difference in either", "ordered 3 n1 update=h2 current=h1 " + all, nil, nil, nil},
		{"above the partition", "ordered 3 n1 update=h2 current=h1 partition=2 " + all, []string{"1", "ssd"}, []int{2}, nil},
		{"under OnDelete", "ordered 3 n1 update=h2 current=h1 OnDelete " + all, []string{"1", "ssd"}, []int{0, 2}, nil},
		{"under Recreate", "ordered 3 n1 update=h2 current=h1 Recreate " + all, []string{"1", "ssd"}, []int{0, 2}, nil},
		{"nobody while the rollout is paused", "ordered 3 n1 update=h2 current=h1 paused " + all, []string{"1", "ssd"}, nil, nil},
		{"back to the current one while it is paused", "ordered 3 n1 update=h2 current=h1 back=h2 paused 0:ready/h2 1:ready/h2 2:ready", []string{"1", "ssd"}, []int{0}, nil},
		{"back after a rollback", "ordered 3 n1 update=h2 current=h1 back=h2 0:ready/h2 1:ready/h2 2:ready", []string{"1", "ssd"}, []int{0}, nil},
		{"also who is not ready", "ordered 3 n1 update=h2 current=h1 0:ready 1:ready 2:missing", []string{"1", "ssd"}, []int{0, 2}, nil},
		{"also on a silent node", "ordered 3 n1 n2~ update=h2 current=h1 0:ready@n2 1:ready 2:ready", []string{"1", "ssd"}, []int{0, 2}, nil},
		{"not who stops", "ordered 3 n1 update=h2 current=h1 0:ready 1:ready 2:turning", []string{"1", "ssd"}, []int{0}, nil},
		{"not who is over", "ordered 3 n1 update=h2 current=h1 0:ready 1:ready 2:over", []string{"1", "ssd"}, []int{0}, nil},
		{"not who is surplus", "ordered 2 n1 update=h2 current=h1 0:ready 1:ready 2:ready", []string{"1", "ssd"}, []int{0}, nil},
		{"nobody of a set that is being deleted", "ordered 3 n1 update=h2 current=h1 deleting " + all, []string{"1", "ssd"}, nil, nil},
		{"nobody of one without an owner", "ordered 3 n1 update=h2 current=h1 orphaned " + all, []string{"1", "ssd"}, nil, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := promoted(t, tc.world, tc.differs...)
			var got []int
			for _, a := range p.Actions {
				if r, is := a.(Promote); is {
					got = append(got, r.ID.Ordinal)
				}
				if stop, is := a.(Stop); is && slices.Contains(tc.reach, stop.ID.Ordinal) {
					t.Errorf("%s is stopped, too", stop.ID.MemberName())
				}
			}
			if !slices.Equal(got, tc.reach) {
				t.Errorf("got %v, want %v: %s", got, tc.reach, brief(p))
			}
			if n := len(p.Batch()); len(tc.reach) > 0 && n != len(tc.reach) {
				t.Errorf("they are written with %d other actions", n-len(tc.reach))
			}
		})
	}
}

func TestAMemberThatIsDownReturnsOnWhatItRunsAnyway(t *testing.T) {
	for _, tc := range []struct {
		name, world string
		due         spec.RevisionHash
	}{
		{"on the new revision, by which it runs the same", "ordered 3 n1 update=h2 current=h1 0:ready 1:ready 2:over", "h2"},
		{"on the old one, if its turn did not come", "ordered 3 n1 update=h2 current=h1 0:ready 1:over 2:ready/h2", "h1"},
		{"on the old one while the rollout is paused", "ordered 3 n1 update=h2 current=h1 paused 0:ready 1:ready 2:over", "h1"},
		{"on the old one below the partition", "ordered 3 n1 update=h2 current=h1 partition=3 0:ready 1:ready 2:over", "h1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := promoted(t, tc.world, "1", "ssd")
			for _, a := range p.Actions {
				if start, is := a.(Start); is {
					if start.Member.Revision != tc.due {
						t.Errorf("it starts on %s, want %s", start.Member.Revision, tc.due)
					}
					return
				}
			}
			t.Errorf("it does not start: %s", brief(p))
		})
	}
}

func TestWhatALifeReadsOfItsRevisionStays(t *testing.T) {
	m := records.Member{Revision: "h1"}
	for _, step := range []struct{ to, began spec.RevisionHash }{{"h2", "h1"}, {"h3", "h1"}, {"h1", ""}, {"h2", "h1"}} {
		m = (&Promote{Revision: step.to}).Record(m)
		if m.Revision != step.to || m.Began != step.began {
			t.Errorf("on its way to %s it is %s, begun with %q", step.to, m.Revision, m.Began)
		}
	}
}

func TestWhatWasAvailableIsAvailableOnARevisionThatIsTheSame(t *testing.T) {
	for line, want := range map[string]spec.RevisionHash{
		"ordered 2 n1 update=h2 current=h1 0:ready 1:ready":     "h2",
		"ordered 2 n1 update=h2 current=h1 0:ready/h1? 1:ready": "",
	} {
		p := promoted(t, line, "1", "ssd")
		if a, is := p.Actions[0].(Promote); !is || a.Identity.AvailableOn != want || a.Identity.Due != "h2" {
			t.Errorf("%s: %+v", line, p.Actions)
		}
	}
}
