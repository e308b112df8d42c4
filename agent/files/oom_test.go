package files

import (
	"testing"

	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

// The rows are those of Kubernetes' TestGetContainerOOMScoreAdjust, on a host of 4,000,000,000 bytes.
func TestOOMScores(t *testing.T) {
	const host = 4_000_000_000
	type quantities = map[string]scalar.Quantity
	request := func(bytes int64) spec.ResourceRequirements {
		return spec.ResourceRequirements{Requests: quantities{"memory": {Milli: bytes * 1000}}}
	}
	limit := func(bytes int64) spec.ResourceRequirements {
		return spec.ResourceRequirements{Limits: quantities{"memory": {Milli: bytes * 1000}, "cpu": {Milli: 100}}}
	}
	always := spec.RestartAlways
	for name, c := range map[string]struct {
		main, sidecar spec.ResourceRequirements
		host          int64
		want, beside  int
	}{
		"best effort":                         {host: host, want: 1000, beside: 1000},
		"guaranteed":                          {main: limit(100_000_000), sidecar: limit(1_000), host: host, want: -997, beside: -997},
		"guaranteed, of an unknown host":      {main: limit(100_000_000), sidecar: limit(1_000), want: -997, beside: -997},
		"burstable":                           {main: request(1_000_000_000), sidecar: request(10_000), host: host, want: 750, beside: 750},
		"burstable, all of the memory":        {main: request(host), sidecar: request(1), host: host, want: 3, beside: 3},
		"burstable, more than there is":       {main: request(1 << 50), sidecar: request(1), host: host, want: 3, beside: 3},
		"burstable, next to nothing":          {main: request(1), sidecar: request(1), host: host, want: 999, beside: 999},
		"burstable, of an unknown host":       {main: request(1_000_000_000), sidecar: request(1), want: 999, beside: 999},
		"a sidecar that requests more":        {main: request(1_000_000_000), sidecar: request(2_000_000_000), host: host, want: 750, beside: 500},
		"only the sidecar requests something": {sidecar: request(2_000_000_000), host: host, want: 999, beside: 500},
	} {
		s := &spec.MemberSpec{
			InitContainers: []spec.Container{{Name: "side", RestartPolicy: &always, Resources: c.sidecar}},
			Containers:     []spec.Container{{Name: "db", Resources: c.main}},
		}
		if got := oomScore(s, &s.Containers[0], c.host); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
		if got := oomScore(s, &s.InitContainers[0], c.host); got != c.beside {
			t.Errorf("%s: the sidecar has %d, want %d", name, got, c.beside)
		}
	}
}
