package spec

import (
	"testing"

	"github.com/stead-project/stead/spec/scalar"
)

func pagesOf(two, one int64) ResourceRequirements {
	limits := map[string]scalar.Quantity{}
	for name, bytes := range map[string]int64{"hugepages-2Mi": two, "hugepages-1Gi": one} {
		if bytes > 0 {
			limits[name] = scalar.Quantity{Milli: bytes * 1000}
		}
	}
	return ResourceRequirements{Limits: limits}
}

// TestHugePagesAreTheMostOfAnyMoment: as cpu and memory.
func TestHugePagesAreTheMostOfAnyMoment(t *testing.T) {
	always := RestartAlways
	s := MemberSpec{
		InitContainers: []Container{
			{Resources: pagesOf(8<<20, 0)},
			{Resources: pagesOf(2<<20, 0), RestartPolicy: &always},
		},
		Containers: []Container{{Resources: pagesOf(2<<20, 1<<30)}, {Resources: pagesOf(2<<20, 0)}},
	}
	if got, want := s.HugePages(), (scalar.HugePages{Of2Mi: 8 << 20, Of1Gi: 1 << 30}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	s.InitContainers = s.InitContainers[1:]
	got := s.HugePages()
	if want := (scalar.HugePages{Of2Mi: 6 << 20, Of1Gi: 1 << 30}); got != want || got.Of(scalar.Page2Mi) != 6<<20 || got.Of(scalar.Page1Gi) != 1<<30 {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got.Plus(got, -1) != (scalar.HugePages{}) || !got.Within(got) || got.Within(scalar.HugePages{Of2Mi: 8 << 20, Of1Gi: 0}) || got.Within(scalar.HugePages{Of2Mi: 0, Of1Gi: 2 << 30}) {
		t.Errorf("the sums of %+v are wrong", got)
	}
	for name, want := range map[string]int64{"hugepages-2Mi": scalar.Page2Mi, "HugePages-1Gi": scalar.Page1Gi, "HugePages": 0, "hugepages-64Ki": 0, "Memory": 0} {
		if size := scalar.HugePageSize(name); size != want {
			t.Errorf("%s: %d, want %d", name, size, want)
		}
	}
}
