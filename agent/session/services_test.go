package session

import (
	"log/slog"
	"net/netip"
	"testing"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// The services of a namespace that have an address, each once, by name.
func TestServicesOfANamespace(t *testing.T) {
	c := OpenSnapshots(Tmpfs(t.TempDir()), slog.New(slog.DiscardHandler))
	address := netip.MustParseAddr("10.89.0.1")
	set := func(ns spec.Namespace, name spec.SetName, names ...records.DNSName) records.Snapshot {
		return records.Snapshot{Ref: spec.SetRef{Namespace: ns, Name: name}, Names: names}
	}
	web, api := records.DNSName{Name: "web", Address: address}, records.DNSName{Name: "api", Address: address.Next(), Ports: []spec.ServicePort{{Port: 80}}}
	c.Put(spec.Sequence{Epoch: 1, Rev: 1}, true, []records.Snapshot{
		set("default", "a", web, records.DNSName{Name: "headless"}), set("default", "b", api, web), set("other", "c", records.DNSName{Name: "x", Address: address}),
	})
	got := c.Services("default")
	if len(got) != 2 || got[0].Name != "api" || got[1].Name != "web" || got[0].Address != address.Next() || len(got[0].Ports) != 1 {
		t.Errorf("got %+v", got)
	}
}
