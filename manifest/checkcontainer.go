package manifest

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

// containerChecks checks the containers of a template, whose terminationGracePeriodSeconds is grace.
type containerChecks struct {
	*checks
	grace int64
}

// container checks one container; volumes are the names that it may mount, member the
// security context of its template.
func (c containerChecks) container(at string, x *spec.Container, volumes map[string]bool, member *spec.MemberSecurityContext) {
	c.label(at+".name", x.Name)
	c.given(at+".image", x.Image, validImage, "image name", "write it as in registry/name:tag")
	c.choice(at+".imagePullPolicy", x.ImagePullPolicy, []string{spec.PullIfNotPresent, spec.PullAlways, spec.PullNever})
	if x.WorkingDir != "" && !strings.HasPrefix(x.WorkingDir, "/") {
		c.fail(at+".workingDir", scalar.Quote(x.WorkingDir)+" is not an absolute path", "write a path that starts with /")
	}
	ports := c.containerPorts(at+".ports", x.Ports)
	c.env(at+".env", x.Env)
	for i := range x.EnvFrom {
		c.envFrom(index(at+".envFrom", i), &x.EnvFrom[i])
	}
	c.resources(at+".resources", &x.Resources)
	c.mountPoints(at+".volumeMounts", x.VolumeMounts, volumes)
	c.probe(at+".readinessProbe", x.ReadinessProbe, ports, false)
	c.probe(at+".leaderProbe", x.LeaderProbe, ports, false)
	c.probe(at+".livenessProbe", x.LivenessProbe, ports, true)
	c.probe(at+".startupProbe", x.StartupProbe, ports, true)
	c.lifecycle(at+".lifecycle", x.Lifecycle, ports)
	c.stepDown(at+".stepDown", x.StepDown, ports)
	contextChecks{c.checks}.container(at+".securityContext", x.SecurityContext, member)
}

// protocols of ports.
var protocols = []string{"TCP", "UDP", "SCTP"}

// containerPorts returns the names of the ports.
func (c containerChecks) containerPorts(at string, ports []spec.ContainerPort) map[string]bool {
	seen := map[string]bool{}
	for i, port := range ports {
		p := index(at, i)
		c.between(p+".containerPort", int64(port.ContainerPort), 1, 65535)
		c.choice(p+".protocol", port.Protocol, protocols)
		c.hostPort(p, &port)
		if port.Name == "" {
			continue
		}
		c.valid(p+".name", port.Name, scalar.ValidPortName, "port name", "write at most 15 of a-z, 0-9 and -, with a letter among them")
		c.once(p+".name", port.Name, seen)
	}
	delete(seen, "")
	return seen
}

func (c containerChecks) env(at string, env []spec.EnvVar) {
	seen := map[string]bool{}
	for i := range env {
		e, p := &env[i], index(at, i)
		c.given(p+".name", e.Name, validEnvName, "variable name", `write printable characters without "="`)
		if e.Name != "" && seen[e.Name] {
			c.warn(p+".name", scalar.Quote(e.Name)+" is given twice; the last one counts", "")
		}
		seen[e.Name] = true
		if e.ValueFrom == nil {
			continue
		}
		if e.Value != "" {
			c.fail(p, "has value and valueFrom", "write one of them")
		}
		c.envSource(p+".valueFrom", e.ValueFrom)
	}
}

func (c containerChecks) envSource(at string, s *spec.EnvVarSource) {
	c.exactlyOne(at, map[string]bool{"fieldRef": s.FieldRef != nil,
		"configMapKeyRef": s.ConfigMapKeyRef != nil, "secretKeyRef": s.SecretKeyRef != nil, "resourceFieldRef": s.ResourceFieldRef != nil})
	c.fieldRef(at+".fieldRef", s.FieldRef, fieldPaths)
	c.resourceRef(at+".resourceFieldRef", s.ResourceFieldRef)
	c.keyRef(at+".configMapKeyRef", s.ConfigMapKeyRef)
	c.keyRef(at+".secretKeyRef", s.SecretKeyRef)
}

func (c containerChecks) keyRef(at string, r *spec.KeyRef) {
	if r != nil {
		c.subdomain(at+".name", r.Name)
		c.fileName(at+".key", r.Key)
	}
}

func (c containerChecks) envFrom(at string, s *spec.EnvFromSource) {
	c.exactlyOne(at, map[string]bool{"configMapRef": s.ConfigMapRef != nil, "secretRef": s.SecretRef != nil})
	if s.Prefix != "" && !validEnvName(s.Prefix) {
		c.fail(at+".prefix", scalar.Quote(s.Prefix)+" cannot be the start of a variable name", `write printable characters without "="`)
	}
	if s.ConfigMapRef != nil {
		c.subdomain(at+".configMapRef.name", s.ConfigMapRef.Name)
	}
	if s.SecretRef != nil {
		c.subdomain(at+".secretRef.name", s.SecretRef.Name)
	}
}

// leastMemory is what a process needs to start; it also catches "512" written for 512Mi.
const leastMemory = 1 << 20

func (c containerChecks) resources(at string, r *spec.ResourceRequirements) {
	for _, name := range sortedKeys(r.Limits) {
		c.resource(at+".limits["+showKey(name)+"]", name, r.Limits[name], leastMemory)
	}
	for _, name := range sortedKeys(r.Requests) {
		// of others than these two, the limit has said it already
		if _, limited := r.Limits[name]; !limited || name == "memory" || name == "cpu" {
			c.resource(at+".requests["+showKey(name)+"]", name, r.Requests[name], 0)
		}
	}
	for _, name := range sortedKeys(r.Requests) {
		if limit, limited := r.Limits[name]; limited && r.Requests[name].Milli > limit.Milli {
			c.fail(at+".requests["+showKey(name)+"]", fmt.Sprintf("%s is more than the limit %s", r.Requests[name], limit), "raise the limit, or request less")
		}
	}
	c.hugePageLimits(at, r)
}

// ephemeralStorage is the disk that a container's own files, logs and emptyDirs take.
const ephemeralStorage = "ephemeral-storage"

// resource checks one entry; leastMemory is the least for memory.
func (c containerChecks) resource(at, name string, q scalar.Quantity, leastMemory int64) {
	switch {
	case name == "memory":
		c.size(at, q, leastMemory)
	case name == ephemeralStorage:
		c.size(at, q, 0)
		c.warn(at, noEffect, "the disk that a container's own files and logs take is neither reserved nor bounded")
	case strings.HasPrefix(name, scalar.HugePagesPrefix):
		c.hugePages(at, name, q)
	case name != "cpu":
		c.fail(at, scalar.Quote(name)+" is not supported yet", "remove it: only cpu, memory and huge pages are counted and bounded")
	case q.Milli < 0:
		c.fail(at, q.String()+" is too small", "write 0 or more")
	}
}

// hostPort checks the host's side of a port.
func (c containerChecks) hostPort(at string, p *spec.ContainerPort) {
	c.between(at+".hostPort", int64(p.HostPort), 0, 65535)
	if p.HostPort != 0 && p.Protocol == "SCTP" {
		c.fail(at+".hostPort", "is not supported for SCTP", "omit it, or write protocol TCP or UDP")
	}
	if p.HostIP == "" {
		return
	}
	switch a, err := netip.ParseAddr(p.HostIP); {
	case err != nil || !a.Is4():
		c.fail(at+".hostIP", scalar.Quote(p.HostIP)+" is not an IPv4 address", "write it as in 192.0.2.1, or omit it")
	case a.IsLoopback():
		c.fail(at+".hostIP", "a host port is not reached through "+p.HostIP, "write another address of the host, or omit it")
	case a.IsMulticast():
		c.fail(at+".hostIP", p.HostIP+" is not an address of a host", "")
	}
}

// hostPorts checks that no two ports of a member are the same on the host. Those of init
// containers, but for sidecars, are not opened.
func (c containerChecks) hostPorts(at string, s *spec.MemberSpec) {
	type place struct {
		at   string
		port spec.HostPort
	}
	var seen []place
	check := func(at string, ports []spec.ContainerPort) {
		for i := range ports {
			now := place{index(at+".ports", i) + ".hostPort", ports[i].OnHost()}
			switch {
			case ports[i].HostPort == 0 && !s.HostNetwork:
				continue
			case ports[i].HostPort == 0:
				now.at = index(at+".ports", i) + ".containerPort"
			case s.HostNetwork && ports[i].HostPort != ports[i].ContainerPort:
				c.fail(now.at, "must be the containerPort beside hostNetwork", fmt.Sprintf("write %d, or omit it", ports[i].ContainerPort))
			}
			if j := slices.IndexFunc(seen, func(p place) bool { return p.port.Meets(now.port) }); j >= 0 {
				c.fail(now.at, fmt.Sprintf("%s is taken by %s", now.port, seen[j].at), "")
			}
			seen = append(seen, now)
		}
	}
	for i := range s.Containers {
		check(index(at+".containers", i), s.Containers[i].Ports)
	}
	for i := range s.InitContainers {
		if s.InitContainers[i].Role() == spec.RoleSidecar {
			check(index(at+".initContainers", i), s.InitContainers[i].Ports)
		}
	}
}
