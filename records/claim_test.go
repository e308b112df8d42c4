package records

import (
	"testing"

	"github.com/stead-project/stead/spec"
)

func TestContainersSayTogetherWhatTheirMemberSays(t *testing.T) {
	got := Claim{Leads: true, Term: 3}.And(Claim{Note: "b", Leads: true, Term: 2}).And(Claim{Note: "c", Busy: "d", Leads: true, Term: 4})
	if want := (Claim{Note: "b", Busy: "d", Leads: true, Term: 4}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestWhoLeads(t *testing.T) {
	says := func(ordinal int, term uint64) Peer {
		return Peer{Ordinal: ordinal, Ready: true, Leads: true, Term: term}
	}
	unready := says(2, 9)
	unready.Ready = false
	cases := []struct {
		name  string
		peers []Peer
		want  int
	}{
		{"nobody says so", []Peer{{Ordinal: 0, Ready: true}, {Ordinal: 1, Ready: true, Term: 7}}, NoOrdinal},
		{"one says so", []Peer{{Ordinal: 0, Ready: true}, says(1, 0)}, 1},
		{"one says so and is not ready", []Peer{unready}, NoOrdinal},
		{"the higher term", []Peer{says(0, 4), says(1, 5), says(2, 3)}, 1},
		{"the highest is not ready", []Peer{says(0, 4), unready}, 0},
		{"two of one term", []Peer{says(0, 4), says(1, 4)}, NoOrdinal},
		{"two of a lower term", []Peer{says(0, 3), says(1, 3), says(2, 4)}, 2},
		{"two of the highest, after one", []Peer{says(0, 3), says(1, 4), says(2, 4)}, NoOrdinal},
		{"three of one term", []Peer{says(0, 4), says(1, 4), says(2, 4)}, NoOrdinal},
	}
	for _, c := range cases {
		if got, leads := Leader(c.peers); got != c.want || leads != (c.want != NoOrdinal) {
			t.Errorf("%s: got %d, %v, want %d", c.name, got, leads, c.want)
		}
	}
}

func TestAServiceSelectsTheLeader(t *testing.T) {
	set := &Set{Ref: spec.SetRef{Namespace: "default", Name: "db"}}
	set.Spec.Template.Metadata.Labels = map[string]string{"app": "db"}
	service := func(selector map[string]string) *ServiceRecord {
		return &ServiceRecord{Meta: Meta{Namespace: "default", Name: "db-rw"}, Spec: spec.ServiceSpec{Selector: selector}}
	}
	s := service(map[string]string{"app": "db", LabelRole: RoleLeader})
	if is, only := s.Selects(set); !is || only != nil || !s.SelectsLeader() {
		t.Errorf("got %v, %v, %v, want the set's leader", is, only, s.SelectsLeader())
	}
	for _, selector := range []map[string]string{{"app": "db", LabelRole: "follower"}, {"app": "other", LabelRole: RoleLeader}} {
		if is, _ := service(selector).Selects(set); is {
			t.Errorf("%v selects the set", selector)
		}
	}
	peers := &Snapshot{Peers: []Peer{{Ordinal: 0, Ready: true}, {Ordinal: 1, Ready: true, Leads: true}}}
	selected := peers.Selected(&DNSName{Leader: true})
	if selected(0) || !selected(1) {
		t.Error("want member 1 alone")
	}
	none := (&Snapshot{Peers: []Peer{{Ordinal: 0, Ready: true}}}).Selected(&DNSName{Leader: true})
	if none(0) || none(NoOrdinal) {
		t.Error("want nobody while nobody leads")
	}
}
