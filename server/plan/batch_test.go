package plan

import (
	"fmt"
	"strings"
	"testing"
)

// What is written alone is, also behind what was decided before it, such as an order of a hook that is taken back.
func TestWhatIsWrittenAtOnceDoesNotDependOnTheOrderOfDecisions(t *testing.T) {
	for want, actions := range map[string][]Action{
		"OrderHook Stop":        {OrderHook{}, Stop{}},
		"Promote":               {OrderHook{}, Promote{}, Stop{}},
		"AddRevision Start":     {OrderHook{}, AddRevision{}, Promote{}, Stop{}, Start{}},
		"RaiseRevision":         {OrderHook{}, RaiseRevision{}, Start{}},
		"PutJobs":               {OrderHook{}, Promote{}, PutJobs{}, AddRevision{}},
		"ForgetBootstrapped":    {OrderHook{}, ForgetBootstrapped{}, Start{}},
		"MarkBootstrapped":      {Stop{}, MarkBootstrapped{Inherited: true}},
		"Stop MarkBootstrapped": {Stop{}, MarkBootstrapped{}},
		"":                      {},
	} {
		var got []string
		for _, a := range (&Plan{Actions: actions}).Batch() {
			got = append(got, strings.TrimPrefix(fmt.Sprintf("%T", a), "plan."))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("of %+v: %q, want %q", actions, got, want)
		}
	}
}
