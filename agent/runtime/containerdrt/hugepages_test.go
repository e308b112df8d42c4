package containerdrt

import (
	"reflect"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/stead-project/stead/spec/scalar"
)

// TestHugePagesAreBoundedOfEachSizeOfTheHost: as Kubernetes' GetHugepageLimitsFromResources.
func TestHugePagesAreBoundedOfEachSizeOfTheHost(t *testing.T) {
	got := pageLimits([]int64{64, 2048, 1 << 20}, scalar.HugePages{Of2Mi: 4 << 20})
	want := []specs.LinuxHugepageLimit{{Pagesize: "64KB"}, {Pagesize: "2MB", Limit: 4 << 20}, {Pagesize: "1GB"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
