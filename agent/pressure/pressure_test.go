package pressure

import (
	"strings"
	"testing"
	"time"

	"github.com/stead-project/stead/records"
)

const gib = 1 << 30

var limits = Limits{DiskPercent: 10, DiskBytes: 10 * gib, MemoryBytes: 100 << 20, ProcessPercent: 10}

// whole is a host that is short of nothing.
func whole() Left {
	return Left{
		Disks:       []Disk{{Dir: "/var", Device: 1, TotalBytes: 50 * gib, FreeBytes: 25 * gib, Files: 1000, FreeFiles: 500}},
		MemoryBytes: 8 * gib, FreeMemoryBytes: 4 * gib, ProcessesMost: 1000, ProcessesThatRun: 100,
	}
}

func words(list []records.NodeCondition) string {
	var out []string
	for _, c := range list {
		word := c.Type
		if c.Class != "" {
			word += "/" + c.Class
		}
		out = append(out, word)
	}
	return strings.Join(out, " ")
}

func TestWhatAHostIsShortOf(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Left)
		want   string
		says   string
	}{
		{"nothing", func(*Left) {}, "", ""},
		{"a tenth of a disk is enough", func(h *Left) { h.Disks[0].FreeBytes = 5*gib + 1 }, "", ""},
		{"less is not", func(h *Left) { h.Disks[0].FreeBytes = 4 * gib }, "DiskPressure", "the disk of /var has 4Gi of 50Gi free, less than 5Gi"},
		{"of a large disk 10 GiB are", func(h *Left) { h.Disks[0].TotalBytes, h.Disks[0].FreeBytes = 20<<40, 10*gib }, "", ""},
		{"and less is not", func(h *Left) { h.Disks[0].TotalBytes, h.Disks[0].FreeBytes = 20<<40, 10*gib-1 }, "DiskPressure", "less than 10Gi"},
		{"inodes", func(h *Left) { h.Disks[0].FreeFiles = 50 }, "", ""},
		{"few inodes", func(h *Left) { h.Disks[0].Files, h.Disks[0].FreeFiles = 100_000, 4_999 }, "DiskPressure", "4999 of 100000 inodes free, less than 5 %"},
		{"a file system that does not count inodes", func(h *Left) { h.Disks[0].Files, h.Disks[0].FreeFiles = 0, 0 }, "", ""},
		{"a disk that cannot be seen", func(h *Left) { h.Disks[0] = Disk{} }, "", ""},
		{"the disk of a class", func(h *Left) {
			h.Disks = append(h.Disks, Disk{Dir: "/ssd", Class: "ssd", Device: 2, TotalBytes: gib})
		}, "DiskPressure/ssd", "the disk of /ssd has 0 of 1Gi free"},
		{"a class on the disk of all", func(h *Left) {
			h.Disks[0].FreeBytes = 0
			h.Disks = append(h.Disks, Disk{Dir: "/var/ssd", Class: "ssd", Device: 1, TotalBytes: 50 * gib})
		}, "DiskPressure", "/var has"},
		{"two disks of all", func(h *Left) {
			h.Disks[0].FreeBytes = 0
			h.Disks = append(h.Disks, Disk{Dir: "/images", Device: 3, TotalBytes: gib})
		}, "DiskPressure", "/var has"},
		{"memory", func(h *Left) { h.FreeMemoryBytes = 100<<20 - 1 }, "MemoryPressure", "of 8Gi memory is available, less than 100Mi"},
		{"memory that is not known", func(h *Left) { h.MemoryBytes, h.FreeMemoryBytes = 0, 0 }, "", ""},
		{"processes", func(h *Left) { h.ProcessesThatRun = 901 }, "PIDPressure", "99 of 1000 processes and threads are left"},
		{"processes that are not known", func(h *Left) { h.ProcessesMost, h.ProcessesThatRun = 0, 0 }, "", ""},
		{"all", func(h *Left) { h.Disks[0].FreeBytes, h.FreeMemoryBytes, h.ProcessesThatRun = 0, 0, 1001 }, "DiskPressure MemoryPressure PIDPressure", "has 0"},
	} {
		h := whole()
		c.change(&h)
		got := limits.judge(h)
		if words(got) != c.want || len(got) > 0 && !strings.Contains(got[0].Message, c.says) {
			t.Errorf("%s: got %+v, want %q: %q", c.name, got, c.want, c.says)
		}
		if none := (Limits{}).judge(h); len(none) > 0 {
			t.Errorf("%s: without limits: %+v", c.name, none)
		}
	}
}

// A condition begins after a while and ends after a longer one, so that it does not come and go with each file; at the
// first look what is short is said at once: the next agent continues as the one before.
func TestAConditionLasts(t *testing.T) {
	short := whole()
	short.FreeMemoryBytes = 0
	type step struct {
		at    time.Duration
		short bool
		want  string
	}
	for name, steps := range map[string][]step{
		"short at the first look": {{0, true, "MemoryPressure"}},
		"short for a moment":      {{0, false, ""}, {10 * time.Second, true, ""}, {20 * time.Second, false, ""}, {30 * time.Second, true, ""}, {40 * time.Second, true, ""}},
		"short for a while":       {{0, false, ""}, {10 * time.Second, true, ""}, {20 * time.Second, true, ""}, {30 * time.Second, true, "MemoryPressure"}},
		"it ends":                 {{0, true, "MemoryPressure"}, {10 * time.Second, false, "MemoryPressure"}, {endTime - 1, false, "MemoryPressure"}, {endTime, false, ""}},
		"it comes back before its end": {
			{0, true, "MemoryPressure"}, {endTime - time.Second, true, "MemoryPressure"}, {endTime + time.Minute, false, "MemoryPressure"},
			{2*endTime - 2*time.Second, false, "MemoryPressure"}, {2*endTime - time.Second, false, ""},
		},
	} {
		w, wall := Tracker{Limits: limits}, time.Unix(1_000_000, 0)
		for i, s := range steps {
			h := whole()
			if s.short {
				h = short
			}
			wall = wall.Add(-time.Hour) // a wall clock that is set back changes nothing
			got := w.Look(h, time.Hour+s.at, wall)
			if words(got) != s.want {
				t.Errorf("%s, look %d: got %q, want %q", name, i, words(got), s.want)
			}
			if len(got) > 0 && (got[0].Status != "True" || got[0].LastTransitionTime.IsZero()) {
				t.Errorf("%s, look %d: got %+v", name, i, got[0])
			}
		}
	}
}
