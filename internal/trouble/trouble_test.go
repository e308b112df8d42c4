package trouble_test

import (
	"errors"
	"testing"

	"github.com/stead-project/stead/internal/trouble"
)

func TestWhatLastsIsNewsOnce(t *testing.T) {
	full, away := errors.New("the disk is full"), errors.New("the disk is away")
	var last trouble.Last
	for i, step := range []struct {
		err  error
		news bool
	}{{nil, false}, {full, true}, {full, false}, {away, true}, {full, true}, {nil, false}, {full, true}} {
		if got := last.IsErr(step.err); got != step.news {
			t.Errorf("step %d, %v: news %v, want %v", i, step.err, got, step.news)
		}
	}
}
