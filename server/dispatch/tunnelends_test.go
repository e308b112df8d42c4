package dispatch

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// keyOf is a public key that differs by its number.
func keyOf(number byte) string {
	return base64.StdEncoding.EncodeToString(slices.Repeat([]byte{number}, 32))
}

// TestANodeHearsOfTheEndsOfTheTunnel: of all nodes with WireGuard, and no more of one that was removed.
func TestANodeHearsOfTheEndsOfTheTunnel(t *testing.T) {
	for _, kind := range []string{"", records.TunnelWireGuard} {
		t.Run("kind "+kind, func(t *testing.T) {
			r := newRig(t, func(s *Server) { s.snapshots.kind = kind })
			r.begin()
			host := func(name spec.NodeName, at string, f *records.TunnelFacts) {
				r.Record(store.NodeKey(name), records.Node{Name: name, UID: spec.UID(name)})
				r.Record(store.FactsKey(name), records.NodeFacts{Name: name, UID: spec.UID(name), Boot: "b9", HostIP: at, Tunnel: f})
			}
			host("other", "192.0.2.9", &records.TunnelFacts{Key: keyOf(1), Port: 7})
			host("old", "192.0.2.8", nil)
			host("bare", "192.0.2.7", &records.TunnelFacts{Missing: "no tun"})
			host("nowhere", "", &records.TunnelFacts{Key: keyOf(2), Port: 7})
			n := r.connect(n1)
			want := func(what string, ends ...string) {
				t.Helper()
				m := n.next(what, func(m *proto.ToNode) bool { return len(m.GetPictures().GetTunnelJson()) > 0 })
				var got records.HostTunnel
				if err := json.Unmarshal(m.GetPictures().GetTunnelJson(), &got); err != nil {
					t.Fatal(err)
				}
				var list []string
				for _, e := range got.Ends {
					list = append(list, fmt.Sprint(e.Node, " ", e.Host, " ", e.Port, " ", e.Key == keyOf(1)))
				}
				if got.Kind != kind || !slices.Equal(list, ends) {
					t.Fatalf("%s: got %q of kind %q, want %q", what, list, got.Kind, ends)
				}
			}
			want("at first", "other 192.0.2.9 7 true")
			host("third", "192.0.2.3", &records.TunnelFacts{Key: keyOf(3), Port: 8})
			want("one that came", "other 192.0.2.9 7 true", "third 192.0.2.3 8 false")
			r.Commit(store.Del(store.FactsKey("other")))
			want("one that was removed", "third 192.0.2.3 8 false")
			r.Commit(store.Del(store.FactsKey("third")))
			want("the last one was removed")
		})
	}
}

// A node that names the key of another would have its traffic, or keep it from it.
func TestANodeHasNoKeyOfAnother(t *testing.T) {
	for name, c := range map[string]struct {
		says *records.TunnelFacts
		key  string
		why  string
	}{
		"its own":                {&records.TunnelFacts{Key: keyOf(2), Port: 7}, keyOf(2), ""},
		"that of another":        {&records.TunnelFacts{Key: keyOf(1), Port: 7}, "", "its key is that of node other"},
		"none":                   {&records.TunnelFacts{Key: "AAAA", Port: 7}, "", ""},
		"one that all know":      {&records.TunnelFacts{Key: keyOf(0), Port: 7}, "", ""},
		"why it has none, alive": {&records.TunnelFacts{Missing: "no\x1b[2J" + strings.Repeat("x", 10_000)}, "", "no"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.Record(store.NodeKey("other"), records.Node{Name: "other", UID: "other"})
			r.Record(store.FactsKey("other"), records.NodeFacts{
				Name: "other", UID: "other", Boot: "b9", HostIP: "192.0.2.9", Tunnel: &records.TunnelFacts{Key: keyOf(1), Port: 7},
			})
			h := n1.message()
			h.FactsJson = store.Encode(records.NodeFacts{HostIP: "192.0.2.1", Tunnel: c.says})
			if _, _, err := r.server.join(t.Context(), h); err != nil {
				t.Fatal(err)
			}
			kv, _ := r.Get(store.FactsKey("n1"))
			f, err := store.Decode[records.NodeFacts](kv)
			if err != nil || f.Tunnel == nil {
				t.Fatalf("%+v, %v", f, err)
			}
			why := f.Tunnel.Missing
			if f.Tunnel.Key != c.key || !strings.HasPrefix(why, c.why) || len(why) > missingBytes || strings.Contains(why, "\x1b") {
				t.Errorf("stored is %+v", f.Tunnel)
			}
			if (f.End() != nil) != (c.key != "") {
				t.Errorf("its end is %+v", f.End())
			}
		})
	}
}
