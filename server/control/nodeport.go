package control

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"github.com/stead-project/stead/manifest"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// staticNodePorts at the begin of their range are chosen last: they are left to manifests that write
// one, as in Kubernetes.
const staticNodePorts = 86

// nodePorts gives the ports of now, which replaces old (nil: it is new), their ports of the nodes, and now the one at
// which nodes say who is ready: the one that is written, the one that it has, or any. It returns what is to be written.
func (d *draft) nodePorts(old, now *records.ServiceRecord, o *manifest.Objects) (also store.Txn, problem *manifest.Problem) {
	now.Spec.Ports = slices.Clone(now.Spec.Ports)
	if old == nil {
		old = &records.ServiceRecord{}
	}
	if now.Spec.OpensPorts() {
		keepNodePorts(old.Spec.Ports, &now.Spec)
	}
	if had := old.Spec.HealthCheckNodePort; now.Spec.AnswersHealth() && now.Spec.HealthCheckNodePort == 0 && !slices.Contains(now.NodePorts(), had) {
		now.Spec.HealthCheckNodePort = had
	}
	d.cfg.Cache.Look(func(v cache.View) {
		problem = d.chooseNodePorts(v, now, o)
		if problem == nil {
			also = nodePortWrites(v, old.NodePorts(), now)
		}
	})
	return also, problem
}

// keepNodePorts has ports without a number keep that of the port of their number and protocol, unless
// another one writes it.
func keepNodePorts(had []spec.ServicePort, s *spec.ServiceSpec) {
	for i := range s.Ports {
		for _, was := range had {
			written := func(q spec.ServicePort) bool { return q.NodePort == was.NodePort && q.Protocol == was.Protocol }
			p, same := &s.Ports[i], was.Port == s.Ports[i].Port && was.Protocol == s.Ports[i].Protocol
			if p.NodePort == 0 && same && was.NodePort != s.HealthCheckNodePort && !slices.ContainsFunc(s.Ports, written) {
				p.NodePort = was.NodePort
			}
		}
	}
}

// chooseNodePorts refuses numbers of others, and chooses the missing ones.
func (d *draft) chooseNodePorts(v cache.View, now *records.ServiceRecord, o *manifest.Objects) *manifest.Problem {
	taken := map[int32]string{} // by what
	for port, r := range cache.NodePorts(v) {
		if r.Namespace != now.Namespace || r.Name != now.Name {
			taken[port] = fmt.Sprintf("%s/%s", r.Namespace, r.Name)
		}
	}
	for _, s := range d.after.services {
		for _, port := range s.NodePorts() {
			taken[port] = fmt.Sprintf("%s/%s of this apply", s.Namespace, s.Name)
		}
	}
	numbers := numbersOf(now)
	for _, n := range numbers {
		if by := taken[*n.at]; by != "" && *n.at != 0 {
			return &manifest.Problem{Path: n.path, What: fmt.Sprintf("%d is the node port of Service %s", *n.at, by), Fix: "write another, or leave it out"}
		}
	}
	if !now.Spec.OpensPorts() && !now.Spec.AnswersHealth() {
		return nil
	}
	for set := range d.setsAhead(v, o) {
		for _, h := range set.Template.Spec.HostPorts() {
			taken[int32(h.Port)] = "a host port"
		}
	}
	for _, n := range numbers { // each number once, also of other protocols
		taken[*n.at] = "this Service"
	}
	for _, n := range numbers {
		if *n.at != 0 || !n.wanted {
			continue
		}
		*n.at = freeNodePort(fmt.Sprintf("%s/%s/%s", now.Namespace, now.Name, n.of), taken)
		if *n.at == 0 {
			return &manifest.Problem{Path: "spec.type", What: fmt.Sprintf("no port of the nodes is free, of %d to %d", spec.FirstNodePort, spec.LastNodePort),
				Fix: "write type: ClusterIP, or delete Services that are not needed"}
		}
		taken[*n.at] = "this Service"
	}
	return nil
}

// portNumber is one of a service's numbers of ports of the nodes.
type portNumber struct {
	at     *int32 // 0: it has none yet
	path   string
	of     string // what it is for, in its service
	wanted bool   // it is chosen if it is not written
}

func numbersOf(s *records.ServiceRecord) (out []portNumber) {
	for i := range s.Spec.Ports {
		p := &s.Spec.Ports[i]
		path, of := fmt.Sprintf("spec.ports[%d].nodePort", i), fmt.Sprintf("%d/%s", p.Port, p.Protocol)
		out = append(out, portNumber{&p.NodePort, path, of, s.Spec.OpensPorts()})
	}
	return append(out, portNumber{&s.Spec.HealthCheckNodePort, "spec.healthCheckNodePort", "health", s.Spec.AnswersHealth()})
}

// freeNodePort searches from a place that follows from a port's name; 0: there is none.
func freeNodePort(name string, taken map[int32]string) int32 {
	hash := fnv.New32a()
	hash.Write([]byte(name))
	const all = spec.LastNodePort - spec.FirstNodePort + 1
	const chosen = all - staticNodePorts
	start := hash.Sum32() % chosen
	for i := range uint32(all) {
		port := int32(spec.FirstNodePort + staticNodePorts + (start+i)%chosen)
		if i >= chosen {
			port = int32(spec.FirstNodePort + i - chosen)
		}
		if taken[port] == "" {
			return port
		}
	}
	return 0
}

// nodePortWrites takes the numbers that a service has now, and frees those that it had.
func nodePortWrites(v cache.View, had []int32, now *records.ServiceRecord) (also store.Txn) {
	has := now.NodePorts()
	for _, port := range slices.Compact(slices.Sorted(slices.Values(has))) {
		if !slices.Contains(had, port) {
			key := store.NodePortKey(port)
			also.If = append(also.If, v.Seen(key))
			also.Then = append(also.Then, store.Put(key, store.Encode(records.NodePort{Port: port, Namespace: now.Namespace, Name: now.Name})))
		}
	}
	for _, port := range slices.Compact(slices.Sorted(slices.Values(had))) {
		if r := cache.NodePorts(v)[port]; !slices.Contains(has, port) && r != nil && r.Namespace == now.Namespace && r.Name == now.Name {
			key := store.NodePortKey(port)
			also.If = append(also.If, v.Seen(key))
			also.Then = append(also.Then, store.Del(key))
		}
	}
	return also
}

// setsAhead yields the specs of all sets as they will be after the apply.
func (d *draft) setsAhead(v cache.View, o *manifest.Objects) func(yield func(*spec.SetSpec) bool) {
	return func(yield func(*spec.SetSpec) bool) {
		given := map[spec.SetRef]bool{}
		for i := range o.Sets {
			given[refOf(o.Sets[i])] = true
			if !yield(&o.Sets[i].Spec) {
				return
			}
		}
		for _, ref := range v.Sets() {
			if set := v.Set(ref); !given[ref] && !yield(&set.Spec) {
				return
			}
		}
	}
}

// hostPorts refuses a host port that is a port of the nodes of a Service, if one of the two is of this apply: what
// comes there can be led to one of them only.
func (a *projection) hostPorts(v cache.View, o *manifest.Objects) (out []manifest.Problem) {
	for _, ref := range a.refs() {
		set := a.sets[ref]
		for _, h := range set.Spec.Template.Spec.HostPorts() {
			if by := a.nodePortOf(v, int32(h.Port)); by != "" {
				out = append(out, o.Locate("StatefulSet", ref.Namespace, string(ref.Name), []manifest.Problem{{Path: "spec.template.spec.containers",
					What: fmt.Sprintf("the host port %s is the node port of Service %s", h, by), Fix: "write another hostPort"}})...)
			}
		}
	}
	for _, ref := range v.Sets() {
		if _, given := a.sets[ref]; given {
			continue
		}
		for _, s := range a.services {
			for _, n := range numbersOf(s) {
				if has := func(h spec.HostPort) bool { return int32(h.Port) == *n.at }; slices.ContainsFunc(v.Set(ref).Spec.Template.Spec.HostPorts(), has) {
					field := n.path[strings.LastIndexByte(n.path, '.')+1:]
					out = append(out, o.Locate("Service", s.Namespace, s.Name, []manifest.Problem{{Path: n.path,
						What: fmt.Sprintf("%d is a host port of set %s", *n.at, ref), Fix: "write another " + field}})...)
				}
			}
		}
	}
	return out
}

// nodePortOf is the Service, given or stored, whose port of the nodes a number is; "": it is none's.
func (a *projection) nodePortOf(v cache.View, port int32) string {
	for _, s := range a.services {
		if slices.Contains(s.NodePorts(), port) {
			return string(s.Namespace) + "/" + s.Name
		}
	}
	r := cache.NodePorts(v)[port]
	given := func(s *records.ServiceRecord) bool { return s.Namespace == r.Namespace && s.Name == r.Name }
	if r == nil || slices.ContainsFunc(a.services, given) {
		return "" // of one that is given it is no more
	}
	return string(r.Namespace) + "/" + r.Name
}
