package spec

import (
	"testing"

	"github.com/stead-project/stead/spec/scalar"
)

func TestTheDisruptionFloorRoundsUp(t *testing.T) {
	number := func(n int32) *scalar.IntOrPercent { return &scalar.IntOrPercent{Number: n} }
	percent := func(n int32) *scalar.IntOrPercent { return &scalar.IntOrPercent{Percent: true, Number: n} }
	for _, tt := range []struct {
		d             Disruption
		members, want int
	}{
		{Disruption{}, 3, 0},
		{Disruption{MinAvailable: number(2)}, 3, 2},
		{Disruption{MinAvailable: percent(50)}, 3, 2},
		{Disruption{MinAvailable: percent(1)}, 3, 1},
		{Disruption{MaxUnavailable: number(1)}, 3, 2},
		{Disruption{MaxUnavailable: number(5)}, 3, 0},
		{Disruption{MaxUnavailable: percent(50)}, 3, 1},
		{Disruption{MaxUnavailable: percent(0)}, 3, 3},
	} {
		if got := tt.d.Floor(tt.members); got != tt.want {
			t.Errorf("%s: floor of %d members is %d; want %d", canonicalJSON(tt.d), tt.members, got, tt.want)
		}
	}
}
