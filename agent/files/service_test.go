package files

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// webLink is a service of two ports in the namespace of the test's life.
func webLink(l *records.Life) func(spec.Namespace) []records.ServiceLink {
	return func(ns spec.Namespace) []records.ServiceLink {
		if ns != l.Member.ID.Namespace {
			return nil
		}
		return []records.ServiceLink{{Name: "redis-main", Address: netip.MustParseAddr("10.89.0.11"), Ports: []spec.ServicePort{
			{Name: "db-port", Port: 6379, Protocol: "TCP"}, {Name: "gossip", Port: 53, Protocol: "UDP"}}}}
	}
}

// What Kubernetes sets for a service (its documentation has redis-primary at 10.0.0.11 as example).
func TestServiceVariables(t *testing.T) {
	l, n := life(), host
	n.Services = webLink(l)
	c := &spec.Container{Env: []spec.EnvVar{{Name: "URL", Value: "$(REDIS_MAIN_PORT)/1"}, {Name: "REDIS_MAIN_SERVICE_HOST", Value: "mine"}}}
	got, err := Env(l, c, n, book())
	if err != nil {
		t.Fatal(err)
	}
	got = slices.DeleteFunc(got, func(v string) bool { return strings.HasPrefix(v, "STEAD_") })
	want := []string{
		"REDIS_MAIN_SERVICE_HOST=mine", // what the template writes comes first
		"REDIS_MAIN_SERVICE_PORT=6379", "REDIS_MAIN_SERVICE_PORT_DB_PORT=6379", "REDIS_MAIN_SERVICE_PORT_GOSSIP=53",
		"REDIS_MAIN_PORT=tcp://10.89.0.11:6379",
		"REDIS_MAIN_PORT_6379_TCP=tcp://10.89.0.11:6379", "REDIS_MAIN_PORT_6379_TCP_PROTO=tcp", "REDIS_MAIN_PORT_6379_TCP_PORT=6379", "REDIS_MAIN_PORT_6379_TCP_ADDR=10.89.0.11",
		"REDIS_MAIN_PORT_53_UDP=udp://10.89.0.11:53", "REDIS_MAIN_PORT_53_UDP_PROTO=udp", "REDIS_MAIN_PORT_53_UDP_PORT=53", "REDIS_MAIN_PORT_53_UDP_ADDR=10.89.0.11",
		"URL=tcp://10.89.0.11:6379/1",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	l.NoServiceLinks = true
	if got, _ := Env(l, &spec.Container{}, n, book()); slices.ContainsFunc(got, func(v string) bool { return strings.HasPrefix(v, "REDIS") }) {
		t.Errorf("enableServiceLinks: false, and got %q", got)
	}
}

// Services come and go: no member is restarted for it, as it may be for a ConfigMap.
func TestServicesAreNoPartOfAFingerprint(t *testing.T) {
	l, with := life(), host
	with.Services = webLink(l)
	if a, b := Fingerprint(l, host, book()), Fingerprint(l, with, book()); a != b || a == "" {
		t.Errorf("without services %q, with them %q", a, b)
	}
}
