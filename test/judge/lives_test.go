package judge

import (
	"os"
	"strings"
	"testing"
)

func TestTheCheckerFindsOverlapsAndHeldLocks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, log string
		want      []string
	}{
		{"one life after the other is right", "LIFE d/a-0 1.1 100\nLIFE d/a-0 1.1 200\nLIFE d/a-0 1.5 300\n", nil},
		{"two identities may live at once", "LIFE d/a-0 1.1 100\nLIFE d/a-1 1.2 100\nLIFE d/a-0 1.1 200\n", nil},
		{"two tokens of one identity may not", "LIFE d/a-0 1.1 100\nLIFE d/a-0 1.2 150\nLIFE d/a-0 1.1 200\n",
			[]string{"d/a-0: token 1.2 was heard while 1.1 lived"}},
		{"a held lock is two lives", "LIFE d/a-0 1.1 100\nDOUBLE d/a-0 1.1 150\n",
			[]string{"d/a-0: token 1.1 found the lock held"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := t.TempDir() + "/log"
			if err := os.WriteFile(path, []byte(c.log), 0o600); err != nil {
				t.Fatal(err)
			}
			got, _, err := Lives(path)
			if err != nil || strings.Join(got, "\n") != strings.Join(c.want, "\n") {
				t.Errorf("got %q, %v; want %q", got, err, c.want)
			}
		})
	}
}
