package files

import (
	"testing"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

// As Kubernetes' calculateEmptyDirMemorySize, but for the memory of the node.
func TestMemoryVolumesAreBoundedByTheMembersMemory(t *testing.T) {
	const mi = 1 << 20
	container := func(memory int64) spec.Container {
		if memory == 0 {
			return spec.Container{}
		}
		return spec.Container{Resources: spec.ResourceRequirements{Limits: map[string]scalar.Quantity{"memory": {Milli: memory * 1000}}}}
	}
	for _, c := range []struct {
		name      string
		main      []int64
		first     int64
		sizeLimit int64 // 0: none
		want      int64
	}{
		{"nothing is said", []int64{0}, 0, 0, 0},
		{"a size alone", []int64{0}, 0, 8 * mi, 8 * mi},
		{"memory alone", []int64{64 * mi, 32 * mi}, 0, 0, 96 * mi},
		{"a size that is less", []int64{64 * mi}, 0, 8 * mi, 8 * mi},
		{"a size that is more", []int64{64 * mi}, 0, 128 * mi, 64 * mi},
		{"a container without a limit", []int64{64 * mi, 0}, 0, 0, 64 * mi},
		{"an init container with more", []int64{64 * mi}, 80 * mi, 0, 80 * mi},
	} {
		s := spec.MemberSpec{}
		for _, memory := range c.main {
			s.Containers = append(s.Containers, container(memory))
		}
		if c.first > 0 {
			s.InitContainers = []spec.Container{container(c.first)}
		}
		e := &spec.EmptyDir{Medium: spec.MediumMemory}
		if c.sizeLimit > 0 {
			e.SizeLimit = &scalar.Quantity{Milli: c.sizeLimit * 1000}
		}
		if got := MemoryVolumeBytes(&s, e); got != c.want {
			t.Errorf("%s: got %d, want %d", c.name, got, c.want)
		}
	}
}

// TestWhereAnEmptyDirIs: as Kubernetes, one in HugePages has the only size that the member has.
func TestWhereAnEmptyDirIs(t *testing.T) {
	pages := func(of map[string]int64) *spec.MemberSpec {
		limits := map[string]scalar.Quantity{}
		for size, n := range of {
			limits[scalar.HugePagesPrefix+size] = scalar.Quantity{Milli: n * 1000}
		}
		return &spec.MemberSpec{Containers: []spec.Container{{Resources: spec.ResourceRequirements{Limits: limits}}}}
	}
	for _, c := range []struct {
		medium string
		of     map[string]int64
		want   runtime.Scratch
	}{
		{"", nil, runtime.Scratch{}},
		{spec.MediumMemory, nil, runtime.Scratch{Memory: true}},
		{scalar.MediumHugePages, map[string]int64{"2Mi": 4 << 20}, runtime.Scratch{HugePage: 2 << 20, SizeBytes: 4 << 20}},
		{scalar.MediumHugePages, map[string]int64{"1Gi": 1 << 30}, runtime.Scratch{HugePage: 1 << 30, SizeBytes: 1 << 30}},
		{scalar.MediumHugePages1Gi, map[string]int64{"2Mi": 4 << 20, "1Gi": 2 << 30}, runtime.Scratch{HugePage: 1 << 30, SizeBytes: 2 << 30}},
	} {
		var got runtime.Scratch
		Medium(&got, pages(c.of), &spec.EmptyDir{Medium: c.medium})
		if got != c.want {
			t.Errorf("%s of %v: %+v, want %+v", c.medium, c.of, got, c.want)
		}
	}
}
