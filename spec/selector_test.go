package spec

import "testing"

func TestParseSelectorMatches(t *testing.T) {
	labels := map[string]string{"app": "db", "tier": "back", "empty": ""}
	tests := []struct {
		name, text string
		want       bool
	}{
		{"nothing selects everything", "", true},
		{"an equal pair", "app=db", true},
		{"an equal pair with two signs", "app == db", true},
		{"another value", "app=web", false},
		{"an absent key", "zone=a", false},
		{"unequal", "app!=web", true},
		{"unequal of an absent key", "zone!=a", true},
		{"unequal of the same", "app!=db", false},
		{"present", "app", true},
		{"absent", "!zone", true},
		{"present but asked absent", "!app", false},
		{"one of a list", "app in (web, db)", true},
		{"none of a list", "app notin (web,db)", false},
		{"an empty value", "empty=", true},
		{"all must match", "app=db,tier!=front,app in (db),!zone", true},
		{"one does not", "app=db,tier=front", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, err := ParseSelector(tt.text)
			if err != nil {
				t.Fatal(err)
			}
			if got := s.Matches(labels); got != tt.want {
				t.Errorf("%q: got %v, want %v", tt.text, got, tt.want)
			}
		})
	}
}

func TestParseSelectorRefuses(t *testing.T) {
	for _, text := range []string{",", "a=b,", "=b", "a in", "a in (b", "a b", "a>1", "a=b=c", "a in (b c)", "-a=b", "a=-b"} {
		if s, err := ParseSelector(text); err == nil {
			t.Errorf("%q became %+v", text, s)
		}
	}
}

func TestSelectorsOfNothing(t *testing.T) {
	labels := map[string]string{"a": "b"}
	if (*LabelSelector)(nil).Matches(labels) {
		t.Error("a nil selector matched")
	}
	if !(&LabelSelector{MatchLabels: labels}).Matches(map[string]string{"a": "b", "c": "d"}) {
		t.Error("a subset did not match")
	}
	if (&LabelSelector{MatchExpressions: []SelectorRequirement{{Key: "a", Operator: "Like"}}}).Matches(labels) {
		t.Error("an unknown operator matched")
	}
}
