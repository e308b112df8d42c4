package spec

import (
	"slices"
	"testing"

	"github.com/stead-project/stead/spec/scalar"
)

// asking is a container that requests so many millicores, and as many thousand bytes; "Always"
// makes a sidecar of an init container.
func asking(name string, millis int64, policy ...string) Container {
	c := Container{Name: name, Resources: ResourceRequirements{Requests: map[string]scalar.Quantity{
		"cpu": {Milli: millis}, "memory": {Milli: millis * 1000 * 1000},
	}}}
	if len(policy) > 0 {
		c.RestartPolicy = &policy[0]
	}
	return c
}

// Kubernetes' rule: PodRequests of component-helpers/resource.
func TestRequestsAreTheMostOfAnyMoment(t *testing.T) {
	cases := []struct {
		name string
		init []Container
		main []Container
		want int64
	}{
		{"containers add up", nil, []Container{asking("a", 1), asking("b", 2)}, 3},
		{"an init container that asks for less counts nothing", []Container{asking("i", 2)}, []Container{asking("a", 1), asking("b", 2)}, 3},
		{"of init containers the largest counts", []Container{asking("i", 4), asking("j", 7), asking("k", 5)}, []Container{asking("a", 3)}, 7},
		{"a sidecar adds to the containers", []Container{asking("s", 2, RestartAlways)}, []Container{asking("a", 3)}, 5},
		{"and to the init containers after it", []Container{asking("s", 2, RestartAlways), asking("i", 4)}, []Container{asking("a", 3)}, 6},
		{"but not to those before it", []Container{asking("i", 6), asking("s", 2, RestartAlways)}, []Container{asking("a", 3)}, 6},
		{"nothing is asked for", []Container{{Name: "i"}}, []Container{{Name: "a"}}, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			cpu, memory := (&MemberSpec{InitContainers: c.init, Containers: c.main}).Requests()
			if cpu != c.want || memory != c.want*1000 {
				t.Errorf("got %d millicores, %d bytes; want %d", cpu, memory, c.want)
			}
		})
	}
}

func TestHostPortsAreThoseOfWhatLasts(t *testing.T) {
	always := RestartAlways
	port := func(name string, n int32, policy *string) Container {
		return Container{Name: name, RestartPolicy: policy, Ports: []ContainerPort{{ContainerPort: 1, HostPort: n}}}
	}
	s := MemberSpec{InitContainers: []Container{port("i", 80, nil), port("s", 81, &always)}, Containers: []Container{port("a", 82, nil)}}
	var got []uint16
	for _, p := range s.HostPorts() {
		got = append(got, p.Port)
	}
	if !slices.Equal(got, []uint16{81, 82}) {
		t.Errorf("got %v, want those of the sidecar and the container", got)
	}
}

// In the network of the host each port is one of the host, at the number that the container listens at.
func TestEachPortIsOneOfTheHostInItsNetwork(t *testing.T) {
	s := MemberSpec{Containers: []Container{{Name: "a", Ports: []ContainerPort{{ContainerPort: 80}, {ContainerPort: 53, HostPort: 53, Protocol: "UDP"}}}}}
	if got := s.HostPorts(); len(got) != 1 || got[0].Port != 53 {
		t.Errorf("in its own network: got %v", got)
	}
	s.HostNetwork = true
	want := []HostPort{{Protocol: "TCP", Port: 80, To: 80}, {Protocol: "UDP", Port: 53, To: 53}}
	if got := s.HostPorts(); !slices.Equal(got, want) {
		t.Errorf("in the host's: got %v, want %v", got, want)
	}
}

func TestNamesAreLookedUpAsInKubernetes(t *testing.T) {
	for _, c := range []struct {
		policy         string
		own, onNetwork string // of the host
	}{
		{"", "", DNSDefault},
		{DNSClusterFirst, DNSClusterFirst, DNSDefault},
		{DNSClusterFirstWithHostNet, DNSClusterFirst, DNSClusterFirst},
		{DNSDefault, DNSDefault, DNSDefault},
		{DNSNone, DNSNone, DNSNone},
	} {
		own, host := MemberSpec{DNSPolicy: c.policy}, MemberSpec{DNSPolicy: c.policy, HostNetwork: true}
		if own.LooksUp() != c.own || host.LooksUp() != c.onNetwork {
			t.Errorf("%q: got %q and %q, want %q and %q", c.policy, own.LooksUp(), host.LooksUp(), c.own, c.onNetwork)
		}
	}
}

func TestAVolumeThatOnlyAnInitContainerMountsIsMounted(t *testing.T) {
	mount := []VolumeMount{{Name: "data"}}
	x := Template{Spec: MemberSpec{InitContainers: []Container{{Name: "i", VolumeMounts: mount}}, Containers: []Container{{Name: "a"}}}}
	if !x.Mounts("data") || x.MountsWithout(&SetSpec{}) != "data" {
		t.Error("it counts as not mounted")
	}
}
