package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stead-project/stead/agent/network"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// What a node says counts each address on it once, of all sets and ports; a service that leads nowhere says so.
func TestTheHealthOfAServiceIsWhatIsOnTheNode(t *testing.T) {
	sets := twoSets()
	for i := range 2 {
		sets[i].Ref.Namespace = "default"
		for j := range sets[i].Names {
			if n := &sets[i].Names[j]; n.Name == "web" {
				n.HealthPort = 30100
				n.Ports = append(n.Ports, n.Ports[0])
			}
		}
	}
	for _, tt := range []struct {
		node string
		want int
	}{{"n1", 1}, {"n2", 2}, {"n3", 0}} {
		want := []serviceHealth{{port: 30100, namespace: "default", service: "web", local: tt.want}}
		if got := healthOf(sets, spec.NodeName(tt.node)); !slices.Equal(got, want) {
			t.Errorf("%s: got %+v, want %+v", tt.node, got, want)
		}
	}
}

// Each node says 200 as long as members are on it and it leads to them; the port is open as long as the service wants
// that, and the agent runs. Where another has the port, it is tried again.
func TestANodeSaysTheHealthOfAService(t *testing.T) {
	var at atomic.Value // where the port is
	at.Store("")
	var taken error
	var broken atomic.Bool
	log := &strings.Builder{}
	lead := func(netip.Prefix, []network.Service) error {
		if broken.Load() {
			return errors.New("no nftables")
		}
		return nil
	}
	l := newLeads("n1", func() string { return "10.89.0.0/16" }, lead, slog.New(slog.NewTextHandler(log, nil)))
	l.health.listen = func(port uint16) (net.Listener, error) {
		if port != 30100 || taken != nil {
			return nil, fmt.Errorf("port %d: %w", port, taken)
		}
		lis, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		at.Store(lis.Addr().String())
		return lis, nil
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- l.run(ctx) }()
	sets := func(ready bool, port int32) []records.Snapshot {
		all := twoSets()
		all[0].Ref.Namespace, all[1].Ref.Namespace = "default", "default"
		all[0].Peers[0].Ready, all[0].Names[1].HealthPort, all[1].Names[0].HealthPort = ready, port, port
		return all
	}
	// says waits until the port says so; 0: until nobody answers.
	says := func(when string, code, local int, leading bool) {
		t.Helper()
		var got string
		for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
			resp, err := http.Get(fmt.Sprintf("http://%s/healthz", at.Load()))
			if err != nil {
				got = err.Error()
				if code == 0 {
					return
				}
				continue
			}
			var body any
			err = json.NewDecoder(resp.Body).Decode(&body)
			resp.Body.Close()
			got = fmt.Sprint(resp.StatusCode, resp.Header["X-Load-Balancing-Endpoint-Weight"], resp.Header["Content-Type"], body, err)
			want := fmt.Sprint(code, []string{fmt.Sprint(local)}, []string{"application/json"}, map[string]any{
				"service": map[string]any{"namespace": "default", "name": "web"}, "localEndpoints": local, "serviceProxyHealthy": leading}, nil)
			if got == want {
				return
			}
		}
		t.Fatalf("%s: %s", when, got)
	}
	taken = errors.New("taken")
	l.update(sets(true, 30100))
	for end := time.Now().Add(time.Minute); len(l.fresh) > 0 && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	cancel()
	<-ended
	if !strings.Contains(log.String(), `service default/web: port 30100: taken`) {
		t.Fatalf("logged: %s", log)
	}
	taken = nil
	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	go func() { ended <- l.run(ctx) }()
	l.update(sets(false, 30100))
	says("nothing is ready here", http.StatusServiceUnavailable, 0, true)
	l.update(sets(true, 30100))
	says("a member is ready here", http.StatusOK, 1, true)
	l.update(sets(true, 0))
	says("the service does not want it", 0, 0, false)
	broken.Store(true)
	l.update(sets(true, 30100))
	says("the host does not lead", http.StatusServiceUnavailable, 1, false)
	cancel()
	<-ended
	says("the agent has ended", 0, 0, false)
}
