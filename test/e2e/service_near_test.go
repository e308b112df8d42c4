package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// leadsToWhatIsNear: with externalTrafficPolicy Local a host leads a machine outside to its own members that are ready, which
// are these, and drops what it sends where there is none; it says so by HTTP, and leads itself to all.
func leadsToWhatIsNear(t *testing.T, hosts []*Lab, client string, ready ...string) {
	t.Helper()
	l := hosts[0]
	health := strings.TrimSpace(l.stead("get", "svc", "near", "-o", "jsonpath={.spec.healthCheckNodePort}"))
	says(t, l.stead("describe", "svc", "near"), "172.31.9.98/32", "Local", health)
	outside := func(command ...string) (string, error) {
		return l.try(time.Minute, "nsenter", append([]string{"--net=/run/netns/" + client}, command...)...)
	}
	for i, h := range hosts {
		var here []string
		for _, m := range ready {
			if l.mustMember(m).Status.Node == h.nodeName() {
				here = append(here, m)
			}
		}
		at := fmt.Sprintf("172.31.9.%d", i+1)
		code := "HTTP/1.1 200 OK"
		if len(here) == 0 {
			code = "HTTP/1.1 503 Service Unavailable"
		}
		l.eventually(time.Minute, h.nodeName()+" says who is there", func() error {
			out, err := outside("bash", "-c", fmt.Sprintf(`exec 3<>/dev/tcp/%s/%s; printf 'GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n' >&3; cat <&3`, at, health))
			want := fmt.Sprintf(`{"service":{"namespace":"default","name":"near"},"localEndpoints":%d,"serviceProxyHealthy":true}`, len(here))
			if err != nil || !strings.Contains(out, code) || !strings.Contains(out, want) {
				return fmt.Errorf("it says %q, %v; want %s and %s", out, err, code, want)
			}
			return nil
		})
		if len(here) == 0 {
			if out, err := outside("timeout", "2", toolBinary, "command", "dial", at+":30081"); err == nil || strings.Contains(out, "refused") {
				t.Errorf("from outside %s leads to %q, %v, though no member is there", h.nodeName(), out, err)
			}
		}
		for range 5 * len(here) {
			if out, err := outside(toolBinary, "command", "dial", at+":30081"); err != nil || !slices.Contains(here, strings.TrimSpace(out)) {
				t.Errorf("from outside %s leads to %q, %v; want one of %v", h.nodeName(), out, err, here)
			}
		}
		if out, err := h.inside(time.Minute, toolBinary, "command", "dial", at+":30081"); err != nil || !slices.Contains(ready, strings.TrimSpace(out)) {
			t.Errorf("%s is led to %q, %v; want one of %v", h.nodeName(), out, err, ready)
		}
	}
	balanced := strings.TrimSpace(l.stead("get", "svc", "near", "-o", "jsonpath={.status.loadBalancer.ingress[0].ip}"))
	if l.mustMember("web-1").Status.Node == hosts[1].nodeName() { // to which the range is routed
		if out, err := outside(toolBinary, "command", "dial", balanced+":80"); err != nil || strings.TrimSpace(out) != "web-1" {
			t.Errorf("by the address of the load balancer: %q, %v", out, err)
		}
	}
}
