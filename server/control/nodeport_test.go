package control

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// nodePorts are those of the stored service, in the order of its ports.
func (r *rig) nodePorts(name string) (ports []int32) {
	r.t.Helper()
	for _, p := range r.service(name).Spec.Ports {
		ports = append(ports, p.NodePort)
	}
	return ports
}

// service is a stored one.
func (r *rig) service(name string) records.ServiceRecord {
	r.t.Helper()
	kv, _ := r.Get(store.ServiceKey("default", name))
	s, err := store.Decode[records.ServiceRecord](kv)
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

// opened is a Service of type NodePort with these ports.
func opened(name, ports string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Service\nmetadata: {name: %s}\nspec: {type: NodePort, selector: {app: db}, ports: [%s]}\n---\n", name, ports)
}

// TestNodePorts: chosen or as written, kept by port and protocol as in Kubernetes, one service's alone, and free when
// the service is deleted or does not open any more.
func TestNodePorts(t *testing.T) {
	r := newRig(t)
	r.mustApply(opened("web", "{name: a, port: 80}, {name: b, port: 81, nodePort: 30007}, {name: c, port: 80, protocol: UDP, nodePort: 30007}"))
	had := r.nodePorts("web")
	if had[0] < spec.FirstNodePort || had[0] > spec.LastNodePort || had[0] == 30007 || had[1] != 30007 || had[2] != 30007 {
		t.Fatalf("got %v", had)
	}
	got := r.mustApply(opened("web", "{name: a, port: 80}, {name: b, port: 81}, {name: c, port: 80, protocol: UDP}"))
	if now := r.nodePorts("web"); got[0] != "service web unchanged" || now[0] != had[0] || now[1] != 30007 || now[2] != 30007 {
		t.Errorf("%s: had %v, has %v", got, had, now)
	}
	for _, wrong := range []string{opened("other", "{port: 80, nodePort: 30007}"), opened("other", fmt.Sprintf("{port: 80, protocol: SCTP, nodePort: %d}", had[0]))} {
		_, err := r.apply(wrong)
		refused(t, err, codes.FailedPrecondition, "a.yaml:4:", "spec.ports[0].nodePort:", "is the node port of Service default/web; write another, or leave it out")
	}
	_, err := r.apply(opened("one", "{port: 80, nodePort: 30009}") + opened("two", "{port: 80, nodePort: 30009}"))
	refused(t, err, codes.FailedPrecondition, "is the node port of Service default/one of this apply")
	r.mustApply(opened("web", "{name: a, port: 80}"))
	r.mustApply(opened("other", "{port: 80, nodePort: 30007}"))
	r.mustApply(web("other", "type: ClusterIP"))
	r.deleteService("web")
	r.mustApply(opened("next", fmt.Sprintf("{name: a, port: 80, nodePort: 30007}, {name: b, port: 81, nodePort: %d}", had[0])))
	r.mustApply(web("closed", "type: LoadBalancer, allocateLoadBalancerNodePorts: false"))
	if got := r.nodePorts("closed"); got[0] != 0 {
		t.Errorf("got %v", got)
	}
	r.judgeNodePorts("at the end")
}

// watched is a Service of type LoadBalancer whose health each node tells.
func watched(name, field, ports string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Service\nmetadata: {name: %s}\nspec: {type: LoadBalancer, externalTrafficPolicy: Local, selector: {app: db}, ports: [%s], %s}\n---\n",
		name, ports, field)
}

// TestTheHealthOfAServiceHasAPort: chosen or as written, kept, one service's alone, and free when nobody is to ask there.
func TestTheHealthOfAServiceHasAPort(t *testing.T) {
	r := newRig(t)
	health := func(name string) int32 { return r.service(name).Spec.HealthCheckNodePort }
	r.mustApply(watched("web", "", "{port: 80}"))
	had, port := health("web"), r.nodePorts("web")[0]
	if had < spec.FirstNodePort || had > spec.LastNodePort || had == port {
		t.Fatalf("got %d, and %d for its port", had, port)
	}
	if got := r.mustApply(watched("web", "", "{port: 80}")); got[0] != "service web unchanged" || health("web") != had {
		t.Errorf("%s: had %d, has %d", got, had, health("web"))
	}
	if got, err := r.api.Get(r.ctx, &proto.GetRequest{Kind: proto.KindService, Name: "web"}); err != nil || !strings.Contains(string(got.GetJson()), fmt.Sprintf(`"healthCheckNodePort":%d`, had)) {
		t.Errorf("shown as %s, %v", got.GetJson(), err)
	}
	for _, wrong := range []struct{ manifest, want string }{
		{opened("other", fmt.Sprintf("{port: 80, nodePort: %d}", had)), "spec.ports[0].nodePort:"},
		{watched("other", fmt.Sprint("healthCheckNodePort: ", had), "{port: 80}"), "spec.healthCheckNodePort:"},
		{watched("other", fmt.Sprint("healthCheckNodePort: ", port), "{port: 80}"), "spec.healthCheckNodePort:"},
	} {
		_, err := r.apply(wrong.manifest)
		refused(t, err, codes.FailedPrecondition, "a.yaml:4:", wrong.want, "is the node port of Service default/web; write another, or leave it out")
	}
	_, err := r.apply(strings.Replace(setYAML, "containerPort: 2379", fmt.Sprintf("containerPort: 2379, hostPort: %d", had), 1))
	refused(t, err, codes.FailedPrecondition, "is the node port of Service default/web")
	r.mustApply(watched("web", fmt.Sprint("healthCheckNodePort: ", port), "{port: 80}")) // as its port was
	if health("web") != port || r.nodePorts("web")[0] == port {
		t.Errorf("the health is told at %d, its port is %v; want the former at %d", health("web"), r.nodePorts("web"), port)
	}
	r.mustApply(opened("other", fmt.Sprintf("{port: 80, nodePort: %d}", had)))
	r.mustApply(web("web", "type: LoadBalancer"))
	if health("web") != 0 {
		t.Errorf("with the policy Cluster the health is told at %d", health("web"))
	}
	r.judgeNodePorts("after the policy went")
	r.mustApply(watched("web", fmt.Sprint("healthCheckNodePort: ", port), "{port: 80}"))
	r.deleteService("web")
	r.judgeNodePorts("at the end")
}

// TestANodePortIsNoHostPort: of a set that is given, or stored.
func TestANodePortIsNoHostPort(t *testing.T) {
	set := strings.Replace(setYAML, "containerPort: 2379", "containerPort: 2379, hostPort: 30007", 1)
	service := opened("web", "{port: 80, nodePort: 30007}")
	r := newRig(t)
	_, err := r.apply(set, service)
	refused(t, err, codes.FailedPrecondition, "spec.template.spec.containers: the host port 30007/TCP is the node port of Service default/web; write another hostPort")
	r.mustApply(set)
	_, err = r.apply(service)
	refused(t, err, codes.FailedPrecondition, "a.yaml:4:", "spec.ports[0].nodePort: 30007 is a host port of set default/db; write another nodePort")
	r = newRig(t)
	r.mustApply(service)
	_, err = r.apply(set)
	refused(t, err, codes.FailedPrecondition, "the host port 30007/TCP is the node port of Service default/web")
	r.mustApply(set, web("web", "type: ClusterIP"))
}

// TestNoTwoServicesHaveOneNodePort, whatever is applied and deleted.
func TestNoTwoServicesHaveOneNodePort(t *testing.T) {
	r := newRig(t)
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 0))
	for step := range 200 {
		name := fmt.Sprint("s", rnd.IntN(6))
		port := func() string {
			return []string{fmt.Sprintf("port: %d", 80+rnd.IntN(3)), fmt.Sprintf("port: %d, nodePort: %d", 80+rnd.IntN(3), 30000+rnd.IntN(4))}[rnd.IntN(2)]
		}
		what := "deleted"
		switch rnd.IntN(5) {
		case 0:
			_, _ = r.api.Delete(r.ctx, &proto.DeleteRequest{Kind: proto.KindService, Name: name})
		case 1:
			_, err := r.apply(web(name, ""))
			what = fmt.Sprint("closed ", err)
		case 2:
			_, err := r.apply(watched(name, []string{"", fmt.Sprint("healthCheckNodePort: ", 30000+rnd.IntN(4))}[rnd.IntN(2)], "{name: a, "+port()+"}"))
			what = fmt.Sprint("watched ", err)
		default:
			_, err := r.apply(opened(name, fmt.Sprintf("{name: a, %s}, {name: b, protocol: UDP, %s}", port(), port())))
			what = fmt.Sprint("opened ", err)
		}
		r.judgeNodePorts(fmt.Sprintf("seed %d, step %d: %s %s", seed, step, name, what))
	}
}

// judgeNodePorts fails when two services have a port of the nodes, when one has a port that is not kept for it, and
// when one is kept that none has.
func (r *rig) judgeNodePorts(what string) {
	r.t.Helper()
	of := map[int32]string{}
	_, kvs, err := r.Store.Snapshot(r.ctx, store.KindService+"/")
	if err != nil {
		r.t.Fatal(err)
	}
	for _, kv := range kvs {
		name := kv.Key[strings.LastIndex(kv.Key, "/")+1:]
		s := r.service(name)
		if health := s.Spec.HealthCheckNodePort; (health != 0) != s.Spec.AnswersHealth() || health != 0 && slices.Contains(r.nodePorts(name), health) {
			r.t.Fatalf("%s: %s tells its health at %d, and has the ports %v", what, name, health, r.nodePorts(name))
		}
		for _, port := range s.NodePorts() {
			if by := of[port]; by != "" && by != name {
				r.t.Fatalf("%s: %s and %s have port %d", what, by, name, port)
			}
			of[port] = name
			held, _ := r.Get(store.NodePortKey(port))
			if h, err := store.Decode[records.NodePort](held); err != nil || h.Name != name {
				r.t.Fatalf("%s: %s has port %d, of which is stored %q", what, name, port, held.Value)
			}
		}
	}
	_, kvs, err = r.Store.Snapshot(r.ctx, store.KindNodePort+"/")
	if err != nil || len(kvs) != len(of) {
		r.t.Fatalf("%s: %d ports are kept, %d are used, %v", what, len(kvs), len(of), err)
	}
}
