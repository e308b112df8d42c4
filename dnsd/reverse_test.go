package dnsd

import (
	"net/netip"
	"testing"
)

func TestReverseOrigins(t *testing.T) {
	tests := []struct {
		prefix      string
		count       int
		first, last string
	}{
		{"10.88.0.0/16", 1, "88.10.in-addr.arpa.", "88.10.in-addr.arpa."},
		{"10.88.16.0/20", 16, "16.88.10.in-addr.arpa.", "31.88.10.in-addr.arpa."},
		{"10.0.0.0/9", 128, "0.10.in-addr.arpa.", "127.10.in-addr.arpa."},
		{"10.88.1.4/30", 4, "4.1.88.10.in-addr.arpa.", "7.1.88.10.in-addr.arpa."},
		{"fd00:88::/31", 2, "8.8.0.0.0.0.d.f.ip6.arpa.", "9.8.0.0.0.0.d.f.ip6.arpa."},
	}
	for _, tt := range tests {
		got := reverseOrigins(netip.MustParsePrefix(tt.prefix))
		if len(got) != tt.count || got[0] != tt.first || got[len(got)-1] != tt.last {
			t.Errorf("%s: got %v, want %d from %s to %s", tt.prefix, got, tt.count, tt.first, tt.last)
		}
	}
	if got := reverseOrigins(netip.Prefix{}); got != nil {
		t.Errorf("no range: got %v", got)
	}
}
