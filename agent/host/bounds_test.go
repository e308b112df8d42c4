package host

import "testing"

func TestMembersLeaveTheHostSomeMemory(t *testing.T) {
	const mib, gib = 1 << 20, 1 << 30
	for _, c := range []struct{ total, reserve, want int64 }{
		{64 * gib, 0, 64*gib - 64*gib/20},
		{8 * gib, 0, 8*gib - 512*mib},
		{gib, 0, gib - 256*mib},
		{8 * gib, gib, 7 * gib},
		{8 * gib, -1, 0},
	} {
		if got := membersMemory(c.total, c.reserve); got != c.want {
			t.Errorf("of %d, %d reserved: %d, want %d", c.total, c.reserve, got, c.want)
		}
	}
	o := Options{Reserve: 1 << 60}
	if b, err := o.bounds(8 * gib); err == nil {
		t.Errorf("more than the host has: %+v", b)
	}
	o.Reserve = 0
	if b, err := o.bounds(8 * gib); err != nil || b.Processes <= 0 || b.MemoryBytes <= 0 {
		t.Errorf("%+v, %v", b, err)
	}
}

func TestALimitOfImagesBelowNothingIsRefused(t *testing.T) {
	for bytes, ok := range map[int64]bool{-1: false, 0: true, 20 << 30: true} {
		o := Options{Node: "n1", ImageBytes: bytes}
		if err := o.Check(); (err == nil) != ok {
			t.Errorf("--max-image-bytes %d: %v", bytes, err)
		}
	}
}

func TestMarksOfDisksWithImagesMakeSense(t *testing.T) {
	for _, c := range []struct {
		high, low int
		ok        bool
	}{{85, 80, true}, {0, 80, true}, {0, 0, true}, {1, 0, true}, {100, 99, true}, {80, 80, false}, {80, 85, false}, {101, 80, false}, {-1, -2, false}, {85, -1, false}} {
		o := Options{Node: "n1", ImageHigh: c.high, ImageLow: c.low}
		if err := o.Check(); (err == nil) != c.ok {
			t.Errorf("%d and %d: %v", c.high, c.low, err)
		}
	}
}

func TestRegistriesAreConfiguredWhereContainerdHasThemUnlessSaid(t *testing.T) {
	for given, want := range map[string]string{"": "/etc/containerd/certs.d", "/etc/x": "/etc/x"} {
		o := Options{Node: "n1", Registries: given}
		if err := o.Check(); err != nil || o.Registries != want {
			t.Errorf("%q: got %q, %v, want %q", given, o.Registries, err, want)
		}
	}
}
