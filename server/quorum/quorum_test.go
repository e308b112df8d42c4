package quorum

import (
	"maps"
	"strings"
	"testing"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/stores"
)

func TestTheNextStepOfAJoin(t *testing.T) {
	self := records.Server{Name: "s2", UID: "u2", Peer: "b:1"}
	first := stores.StoreMember{ID: "1", Name: "s1", Peer: "a:1"}
	for name, c := range map[string]struct {
		known   *records.Server
		members []stores.StoreMember
		want    JoinStep
		says    string
	}{
		"a new server is added":                     {nil, []stores.StoreMember{first}, Add, ""},
		"one that crashed before it was added":      {&self, []stores.StoreMember{first}, Add, ""},
		"one that crashed after it was added":       {&self, []stores.StoreMember{first, {ID: "2", Peer: "b:1", Learner: true}}, Start, ""},
		"one that started and has no data":          {&self, []stores.StoreMember{first, {ID: "2", Name: "s2", Peer: "b:1"}}, Refuse, "server replace s2"},
		"a learner that started and has no data":    {&self, []stores.StoreMember{first, {ID: "2", Name: "s2", Peer: "b:1", Learner: true}}, Refuse, "server replace s2"},
		"another directory under its name":          {&records.Server{Name: "s2", UID: "u9", Peer: "b:1"}, []stores.StoreMember{first}, Refuse, "server replace s2"},
		"its data is lost and it has a new address": {&self, []stores.StoreMember{first, {ID: "2", Name: "s2", Peer: "c:1"}}, Refuse, "server replace s2"},
		"another server's address":                  {nil, []stores.StoreMember{first, {ID: "3", Name: "s3", Peer: "b:1"}}, Refuse, "has the address b:1"},
		"another server's, at its next try":         {&self, []stores.StoreMember{first, {ID: "3", Name: "s3", Peer: "b:1"}}, Refuse, "has the address b:1"},
		"an address that was added for another":     {nil, []stores.StoreMember{first, {ID: "3", Peer: "b:1", Learner: true}}, Refuse, "has the address b:1"},
	} {
		t.Run(name, func(t *testing.T) {
			got, text := Join(c.known, c.members, self)
			if got != c.want || !strings.Contains(text, c.says) || (text == "") != (c.says == "") {
				t.Errorf("got %v, %q; want %v, %q", got, text, c.want, c.says)
			}
		})
	}
}

func TestDataThatWentBackIsRefused(t *testing.T) {
	was := stores.Mark{Term: 3, Index: 10}
	for name, c := range map[string]struct {
		have stores.Mark
		back bool
	}{
		"as it was":             {was, false},
		"further":               {stores.Mark{Term: 3, Index: 11}, false},
		"a later term":          {stores.Mark{Term: 4, Index: 10}, false},
		"fewer writes":          {stores.Mark{Term: 3, Index: 9}, true},
		"a vote is forgotten":   {stores.Mark{Term: 2, Index: 10}, true},
		"more of an older term": {stores.Mark{Term: 2, Index: 12}, true},
	} {
		if why := SetBack("s2", c.have, was, nil); (why != "") != c.back || c.back && !strings.Contains(why, "stead server replace s2") {
			t.Errorf("%s: got %q", name, why)
		}
	}
	acked := []stores.Mark{{}, was, {Term: 1, Index: 99}}
	for have, back := range map[stores.Mark]bool{
		was: false, {Term: 3, Index: 9}: true, {Term: 2, Index: 10}: true,
		{Term: 4, Index: 9}: false, // a later leader has replaced what was never confirmed
	} {
		if why := SetBack("s2", have, stores.Mark{}, acked); (why != "") != back {
			t.Errorf("%+v was acknowledged, and it is at %+v: got %q", was, have, why)
		}
	}
	if why := SetBack("s2", stores.Mark{}, stores.Mark{}, []stores.Mark{{}}); why != "" {
		t.Errorf("of a member that nobody knows: %s", why)
	}
}

func TestWhatIsNotedOfMembers(t *testing.T) {
	three := []stores.StoreMember{{ID: "1"}, {ID: "2"}, {ID: "3"}}
	kept := map[string]stores.Mark{"2": {Term: 1, Index: 5}, "3": {Term: 2, Index: 4}, "9": {Term: 1, Index: 1}}
	last := map[string]stores.Mark{"1": {Term: 2, Index: 7}, "2": {Term: 2, Index: 4}}
	seen := map[string]stores.Mark{"1": {Term: 2, Index: 9}, "2": {Term: 2, Index: 9}, "8": {}}
	want := map[string]stores.Mark{
		"1": {Term: 2, Index: 7}, // as of the look before
		"2": {Term: 2, Index: 5}, // the later of each
		"3": {Term: 2, Index: 4}, // it does not answer
	}
	if got := Noted(kept, last, seen, three); !maps.Equal(got, want) {
		t.Errorf("got %v; want %v", got, want)
	}
}

func TestWhoNeverStartedIsNamed(t *testing.T) {
	members := []stores.StoreMember{{ID: "1", Name: "s1", Peer: "a:1"}, {ID: "2", Peer: "b:1"}, {ID: "3", Peer: "c:1"}}
	got := Named(members, map[string]records.Server{"s2": {Name: "s2", Peer: "b:1"}, "s9": {Name: "s9", Peer: "a:1"}})
	if got[0].Name != "s1" || got[1].Name != "s2" || got[2].Name != "c:1" || members[1].Name != "" {
		t.Errorf("got %v of %v", got, members)
	}
}

func TestALostMajorityIsNamed(t *testing.T) {
	members := []stores.StoreMember{{ID: "1", Name: "s1", Peer: "a:1"}, {ID: "2", Name: "s2", Peer: "b:1"}, {ID: "3", Name: "s3", Peer: "c:1"}, {ID: "4", Learner: true}}
	for alive, want := range map[string]string{
		"123": "", "12": "", "1": "1 of its 3 servers can be reached, and 2 are needed; not reachable: s2 (b:1), s3 (c:1)",
		"14": "1 of its 3 servers", "": "0 of its 3",
	} {
		up := map[string]bool{}
		for _, r := range alive {
			up[string(r)] = true
		}
		if got := Lost(members, up); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("alive %q: got %q; want %q", alive, got, want)
		}
	}
}

func TestARemovalKeepsTheQuorum(t *testing.T) {
	voters := func(n int) (out []stores.StoreMember) {
		for i := range n {
			out = append(out, stores.StoreMember{ID: string(rune('a' + i)), Name: string(rune('a' + i))})
		}
		return out
	}
	learner := stores.StoreMember{ID: "l", Learner: true}
	for name, c := range map[string]struct {
		members []stores.StoreMember
		alive   string
		id      string
		says    string
	}{
		"the only one":                     {voters(1), "a", "a", "only server"},
		"one of two":                       {voters(2), "ab", "b", ""},
		"the dead one of two":              {voters(2), "a", "b", "1 of 2"},
		"one of three":                     {voters(3), "abc", "a", ""},
		"the dead one of three":            {voters(3), "ab", "c", ""},
		"a live one while another is dead": {voters(3), "ab", "a", "of the 2 servers that stay, 1"},
		"two of three are dead":            {voters(3), "a", "c", "1 of 3"},
		"a learner":                        {append(voters(1), learner), "a", "l", ""},
		"a learner without a quorum":       {append(voters(3), learner), "a", "l", "1 of 3"},
		"a live one of five, one is dead":  {voters(5), "abcd", "a", ""},
	} {
		t.Run(name, func(t *testing.T) {
			alive := map[string]bool{}
			for _, r := range c.alive {
				alive[string(r)] = true
			}
			got := MayRemove(c.members, alive, c.id)
			if (got == "") != (c.says == "") || !strings.Contains(got, c.says) {
				t.Errorf("got %q; want %q", got, c.says)
			}
		})
	}
	if got := Next(append([]stores.StoreMember{learner}, voters(3)...), map[string]bool{"l": true, "a": true, "c": true}, "a"); got != "c" {
		t.Errorf("the lead goes to %q", got)
	}
}
