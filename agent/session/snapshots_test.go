package session

import (
	"log/slog"
	"net/netip"
	"slices"
	"testing"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

func TestPicturesNeverGoBack(t *testing.T) {
	c := OpenSnapshots(Tmpfs(t.TempDir()), slog.New(slog.DiscardHandler))
	seq := func(rev int64) spec.Sequence { return spec.Sequence{Epoch: 1, Rev: rev} }
	replicas := func() int {
		p, _ := c.Find(ref)
		return p.Replicas
	}
	c.Put(seq(10), true, []records.Snapshot{picture(10, 3)})
	if got := c.Put(seq(9), true, nil); got != nil || replicas() != 3 {
		t.Fatalf("an older full list: changed %v, replicas %d", got, replicas())
	}
	if got := c.Put(seq(11), false, []records.Snapshot{picture(9, 5)}); got != nil || replicas() != 3 {
		t.Fatalf("an older picture: changed %v, replicas %d", got, replicas())
	}
	c.Put(seq(12), false, []records.Snapshot{picture(12, 5)})
	if replicas() != 5 {
		t.Fatalf("a newer picture: replicas %d", replicas())
	}
	c.Put(seq(13), false, []records.Snapshot{{Ref: ref, Sequence: seq(13), Gone: true}})
	if len(c.All()) != 0 {
		t.Fatalf("a set that is gone: %v", c.All())
	}
}

func TestTheNextAgentKnowsTheHosts(t *testing.T) {
	dir := Tmpfs(t.TempDir())
	c := OpenSnapshots(dir, slog.New(slog.DiscardHandler))
	if c.Hosts() != nil {
		t.Fatalf("before any were heard of: %v", c.Hosts())
	}
	want := []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")}
	if got, moved := c.PutHosts([]string{"192.0.2.1", "192.0.2.2"}); !moved || !slices.Equal(got, want) {
		t.Fatalf("got %v, %v", got, moved)
	}
	for _, told := range [][]string{nil, {"192.0.2.1", "192.0.2.2"}} {
		if got, moved := c.PutHosts(told); moved {
			t.Errorf("told %q: moved to %v", told, got)
		}
	}
	must(t, c.Save())
	if got := OpenSnapshots(dir, slog.New(slog.DiscardHandler)).Hosts(); !slices.Equal(got, want) {
		t.Errorf("the next agent: got %v, want %v", got, want)
	}
}

func TestTheNextAgentKnowsTheTunnel(t *testing.T) {
	dir := Tmpfs(t.TempDir())
	c := OpenSnapshots(dir, slog.New(slog.DiscardHandler))
	put := func(text string) *records.HostTunnel {
		t.Helper()
		got, err := c.PutTunnel([]byte(text))
		must(t, err)
		return got
	}
	if c.Tunnel() != nil || put("") != nil {
		t.Fatalf("before any was heard of: %v", c.Tunnel())
	}
	const first = `{"kind":"wireguard","ends":[{"node":"n1","host":"192.0.2.1","port":1,"key":"k"}]}`
	if got := put(first); got == nil || got.Kind != "wireguard" || len(got.Ends) != 1 || got.Ends[0].Host != netip.MustParseAddr("192.0.2.1") {
		t.Fatalf("got %+v", got)
	}
	if got := put(first); got != nil {
		t.Errorf("the same again: %+v", got)
	}
	if got := put(`{}`); got == nil || got.Kind != "wireguard" || len(got.Ends) != 0 {
		t.Errorf("all nodes were removed, by a server that was told no kind: %+v", got)
	}
	must(t, c.Save())
	if got := OpenSnapshots(dir, slog.New(slog.DiscardHandler)).Tunnel(); got == nil || got.Kind != "wireguard" {
		t.Errorf("the next agent: got %+v", got)
	}
	if _, err := c.PutTunnel([]byte("x")); err == nil || c.Tunnel().Kind != "wireguard" {
		t.Errorf("what cannot be read: %v, %+v", err, c.Tunnel())
	}
}
