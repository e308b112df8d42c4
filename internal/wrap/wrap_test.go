package wrap_test

import (
	"io"
	"testing"

	"github.com/stead-project/stead/internal/wrap"
)

func TestAnErrorSaysWhatWasBeingDone(t *testing.T) {
	do := func(in error) (err error) {
		defer wrap.Error(&err, "read %s, %d%%", "a", 7)
		return in
	}
	if err := do(nil); err != nil {
		t.Errorf("no error became %v", err)
	}
	if got := do(io.EOF).Error(); got != "read a, 7%: EOF" {
		t.Errorf("got %q", got)
	}
}
