package self

import (
	"strings"
	"testing"

	"github.com/stead-project/stead/records"
)

func TestWhatAMemberSaysIsTextAndATerm(t *testing.T) {
	cases := []struct {
		name  string
		files map[string]string
		want  records.Claim
	}{
		{"nothing", nil, records.Claim{}},
		{"a note without its end of line", map[string]string{"note": "seqno 7\n"}, records.Claim{Note: "seqno 7"}},
		{"a note that would move the cursor", map[string]string{"note": "a\x1b[2Jb\nc"}, records.Claim{Note: "a\uFFFD[2Jb c"}},
		{"a note that is no text", map[string]string{"note": "\xff\xfe"}, records.Claim{}},
		{"the longest note", map[string]string{"note": strings.Repeat("x", records.MaxNote)}, records.Claim{Note: strings.Repeat("x", records.MaxNote)}},
		{"a longer one", map[string]string{"note": strings.Repeat("x", records.MaxNote+1)}, records.Claim{}},
		{"one that is longer as it is shown", map[string]string{"note": strings.Repeat("\x01", records.MaxNote)}, records.Claim{}},
		{"it leads", map[string]string{"leader": ""}, records.Claim{Leads: true}},
		{"it leads in a term", map[string]string{"leader": " 12\n"}, records.Claim{Leads: true, Term: 12}},
		{"in a term that is none", map[string]string{"leader": "yes"}, records.Claim{}},
		{"or below zero", map[string]string{"leader": "-1"}, records.Claim{}},
		{"or too high", map[string]string{"leader": "18446744073709551616"}, records.Claim{}},
		{"busy", map[string]string{"busy": "feeds db-2\n"}, records.Claim{Busy: "feeds db-2"}},
		{"busy without a reason", map[string]string{"busy": ""}, records.Claim{Busy: "it gave no reason"}},
	}
	for _, c := range cases {
		files := map[string][]byte{}
		for name, content := range c.files {
			files[name] = []byte(content)
		}
		if got := parse(files); got != c.want {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.want)
		}
	}
}
