package spec

import "testing"

func TestExpand(t *testing.T) {
	names := map[string]string{"A": "1", "B": "$(A)", "EMPTY": "", "A-B.C": "x"}
	tests := []struct{ name, in, want string }{
		{"plain text stays", "hello", "hello"},
		{"a known name", "a=$(A)!", "a=1!"},
		{"several", "$(A)$(A)", "11"},
		{"what was put in is not expanded again", "$(B)", "$(A)"},
		{"an empty value", "[$(EMPTY)]", "[]"},
		{"an unknown name stays as written", "$(NO)", "$(NO)"},
		{"two dollars are one", "$$", "$"},
		{"an escaped reference", "$$(A)", "$(A)"},
		{"an escaped dollar before a reference", "$$$(A)", "$1"},
		{"a shell variable stays", "$A ${A}", "$A ${A}"},
		{"an open reference stays", "$(A", "$(A"},
		{"an open reference before a whole one", "$($(A)", "$($(A)"},
		{"a dollar at the end", "cost $", "cost $"},
		{"names with dots and dashes", "$(A-B.C)", "x"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := Expand(tt.in, func(n string) (string, bool) { v, ok := names[n]; return v, ok })
			if got != tt.want {
				t.Errorf("%q: got %q, want %q", tt.in, got, tt.want)
			}
		})
	}
}
