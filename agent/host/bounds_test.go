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
	if b, err := o.bounds(); err == nil {
		t.Errorf("more than the host has: %+v", b)
	}
	o.Reserve = 0
	if b, err := o.bounds(); err != nil || b.Processes <= 0 || b.MemoryBytes <= 0 {
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
