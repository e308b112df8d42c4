package files

import (
	"testing"

	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

func quantity(t *testing.T, text string) scalar.Quantity {
	t.Helper()
	q, err := scalar.ParseQuantity(text)
	must(t, err)
	return q
}

func quantities(t *testing.T, pairs ...string) map[string]scalar.Quantity {
	t.Helper()
	out := map[string]scalar.Quantity{}
	for i := 0; i < len(pairs); i += 2 {
		out[pairs[i]] = quantity(t, pairs[i+1])
	}
	return out
}

// As Kubernetes counts: in units of the divisor, rounded up; a limit that is not set, or is 0, is
// what the node has, except for huge pages.
func TestAResourceIsShownInUnitsOfTheDivisorRoundedUp(t *testing.T) {
	l := life()
	l.Template.Spec.Containers = []spec.Container{
		{Name: "db", Resources: spec.ResourceRequirements{
			Limits: quantities(t, "cpu", "1500m", "memory", "1Gi"), Requests: quantities(t, "cpu", "100m"),
		}},
		{Name: "side", Resources: spec.ResourceRequirements{Limits: quantities(t, "cpu", "0"), Requests: quantities(t, "memory", "1000001")}},
	}
	n := Node{Allocatable: Allocatable{CPUMillis: 8000, MemoryBytes: 4<<30 - 1, DiskBytes: 10e9}}
	for _, c := range []struct{ container, resource, divisor, want string }{
		{"", "limits.cpu", "", "2"},
		{"", "limits.cpu", "1", "2"},
		{"", "limits.cpu", "1m", "1500"},
		{"", "requests.cpu", "", "1"},
		{"", "requests.cpu", "1m", "100"},
		{"", "limits.memory", "", "1073741824"},
		{"", "limits.memory", "1Mi", "1024"},
		{"", "limits.memory", "1M", "1074"},
		{"", "limits.memory", "1G", "2"},
		{"", "requests.memory", "1Mi", "1024"}, // the limit
		{"", "limits.ephemeral-storage", "1G", "10"},
		{"", "requests.ephemeral-storage", "", "0"},
		{"", "limits.hugepages-2Mi", "1Mi", "0"},
		{"side", "limits.cpu", "", "8"}, // 0 is as if it were not set
		{"side", "limits.memory", "1Gi", "4"},
		{"side", "limits.memory", "", "4294967295"},
		{"side", "requests.memory", "1M", "2"},
	} {
		ref := &spec.ResourceFieldRef{ContainerName: c.container, Resource: c.resource}
		if c.divisor != "" {
			ref.Divisor = quantity(t, c.divisor)
		}
		got, err := resourceValue(l, &l.Template.Spec.Containers[0], ref, n)
		if err != nil || got != c.want {
			t.Errorf("%+v: got %q, %v", c, got, err)
		}
	}
	l.Template.Spec.Containers[1].Env = []spec.EnvVar{
		{Name: "MIB", ValueFrom: &spec.EnvVarSource{ResourceFieldRef: &spec.ResourceFieldRef{ContainerName: "db", Resource: "limits.memory", Divisor: quantity(t, "1Mi")}}},
		{Name: "HEAP", Value: "-Xmx$(MIB)m"},
	}
	env, err := Env(l, &l.Template.Spec.Containers[1], n, book())
	must(t, err)
	equal(t, "variables", env[len(env)-2:], []string{"MIB=1024", "HEAP=-Xmx1024m"})
}

func TestAResourceOfAContainerThatIsNotThereIsMissing(t *testing.T) {
	l := life()
	l.Template.Spec.Containers[0].Env = []spec.EnvVar{
		{Name: "X", ValueFrom: &spec.EnvVarSource{ResourceFieldRef: &spec.ResourceFieldRef{ContainerName: "no", Resource: "limits.cpu"}}}}
	equal(t, "missing", MissingEnv(l, host, book(), func(string) bool { return true }), `variable X: there is no container "no"`)
}
