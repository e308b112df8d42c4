package turns_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stead-project/stead/internal/turns"
)

func TestOneAtATimeOfEachKey(t *testing.T) {
	var o turns.Of[string]
	done, err := o.Wait(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	if other, err := o.Wait(t.Context(), "b"); err != nil {
		t.Errorf("another key: %v", err)
	} else {
		other()
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := o.Wait(ended, "a"); !errors.Is(err, context.Canceled) {
		t.Errorf("the same key, while it is held: %v, want the end of the context", err)
	}
	done()
	if done, err = o.Wait(t.Context(), "a"); err != nil {
		t.Errorf("the same key, later: %v", err)
	}
	done()
}
