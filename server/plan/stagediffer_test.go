package plan

import (
	"encoding/json"
	"strconv"
	"testing"
	"time"

	"github.com/stead-project/stead/spec"
)

// differences reads "1 ssd 3-4 hdd".
func differences(t testing.TB, words []string) (list spec.Differences) {
	t.Helper()
	for i := 0; i+1 < len(words); i += 2 {
		var s spec.OrdinalSpan
		if err := json.Unmarshal([]byte(strconv.Quote(words[i])), &s); err != nil {
			t.Fatal(err)
		}
		list = append(list, spec.Difference{Ordinals: []spec.OrdinalSpan{s}, NodeSelector: map[string]string{"disk": words[i+1]}})
	}
	return list
}

// lasting are the outages that a plan names, d longer than they were.
func lasting(old map[Outage]time.Duration, named []Outage, d time.Duration) map[Outage]time.Duration {
	now := map[Outage]time.Duration{}
	for _, o := range named {
		now[o] = old[o] + d
	}
	return now
}
