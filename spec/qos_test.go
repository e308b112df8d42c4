package spec

import (
	"testing"

	"github.com/stead-project/stead/spec/scalar"
)

// The rows are Kubernetes': see TestComputePodQOS.
func TestQOS(t *testing.T) {
	type q = map[string]scalar.Quantity
	one, two := scalar.Quantity{Milli: 1000}, scalar.Quantity{Milli: 2000}
	full := ResourceRequirements{Limits: q{"cpu": one, "memory": two}}
	for name, c := range map[string]struct {
		containers []ResourceRequirements
		want       QOSClass
	}{
		"nothing":                             {[]ResourceRequirements{{}, {}}, QOSBestEffort},
		"only a request of nothing":           {[]ResourceRequirements{{Requests: q{"cpu": {}}}}, QOSBestEffort},
		"only storage":                        {[]ResourceRequirements{{Requests: q{"ephemeral-storage": one}}}, QOSBestEffort},
		"limits alone":                        {[]ResourceRequirements{full, full}, QOSGuaranteed},
		"requests as limits":                  {[]ResourceRequirements{{Limits: full.Limits, Requests: full.Limits}}, QOSGuaranteed},
		"one container has none":              {[]ResourceRequirements{full, {}}, qosBurstable},
		"one container is limited in memory":  {[]ResourceRequirements{full, {Limits: q{"memory": one}}}, qosBurstable},
		"a container requests less":           {[]ResourceRequirements{{Limits: full.Limits, Requests: q{"cpu": one, "memory": one}}}, qosBurstable},
		"a container requests without limits": {[]ResourceRequirements{{Requests: full.Limits}}, qosBurstable},
	} {
		s := &MemberSpec{}
		for i, r := range c.containers {
			if i == 0 {
				s.Containers = append(s.Containers, Container{Resources: r})
				continue
			}
			s.InitContainers = append(s.InitContainers, Container{Resources: r})
		}
		if got := s.QOS(); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
