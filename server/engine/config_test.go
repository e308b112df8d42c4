package engine

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/store/memstore"
)

func TestNewRefusesWhatItCannotWorkWith(t *testing.T) {
	s := memstore.New()
	defer s.Close()
	cached, cidr := cache.New(s, nil), netip.MustParsePrefix("10.88.0.0/30")
	for name, c := range map[string]Config{
		"no store":                  {Cache: cached, CIDR: cidr},
		"no cache":                  {Store: s, CIDR: cidr},
		"no range":                  {Store: s, Cache: cached},
		"a range that is none":      {Store: s, Cache: cached, CIDR: netip.PrefixFrom(cidr.Addr(), 33)},
		"a range without addresses": {Store: s, Cache: cached, CIDR: netip.MustParsePrefix("10.88.0.0/31")},
		"one address":               {Store: s, Cache: cached, CIDR: netip.MustParsePrefix("10.88.0.1/32")},
		"IPv6":                      {Store: s, Cache: cached, CIDR: netip.MustParsePrefix("fd00::/64")},
		"a short range of IPv6":     {Store: s, Cache: cached, CIDR: netip.MustParsePrefix("fd00::/16")},
	} {
		if _, err := New(c); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

func TestWhatIsNotConfiguredHasItsDefault(t *testing.T) {
	s := memstore.New()
	defer s.Close()
	type times struct{ lease, quarantine, status time.Duration }
	for _, given := range []times{{}, {time.Second, time.Minute, time.Millisecond}} {
		want := given
		if want == (times{}) {
			want = times{10 * time.Second, 10 * time.Minute, 100 * time.Millisecond}
		}
		e, err := New(Config{
			Store: s, Cache: cache.New(s, nil), CIDR: netip.MustParsePrefix("10.88.0.0/30"), // the smallest that holds some
			LeaseTTL: given.lease, Quarantine: given.quarantine, StatusDelay: given.status,
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := (times{e.cfg.LeaseTTL, e.cfg.Quarantine, e.cfg.StatusDelay}); got != want {
			t.Errorf("given %v: got %v, want %v", given, got, want)
		}
	}
}
