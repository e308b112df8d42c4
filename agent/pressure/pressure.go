// Package pressure says when a host is short of disk, memory or processes, before its members suffer. PURE: it is
// shown what the host has, and when that was.
package pressure

import (
	"fmt"
	"slices"
	"time"

	"github.com/stead-project/stead/records"
)

// Limits are what a host must have left. Kubernetes' kubelet has the same for a disk and for memory, but for DiskBytes.
type Limits struct {
	// DiskPercent of a disk must be free, or DiskBytes if that is less, and half as many percent of its inodes; 0: any
	// disk will do.
	DiskPercent int
	DiskBytes   int64
	// MemoryBytes must be available; 0: any number will do.
	MemoryBytes int64
	// ProcessPercent of the processes and threads that the kernel allows must be free; 0: any number will do.
	ProcessPercent int
}

// Disk is a file system of the host.
type Disk struct {
	Dir    string // on it, for people
	Class  string // the storage class that is on it; "": all members need it
	Device uint64 // disks with the same one are one
	// What is free is what programs may use that are not root's.
	TotalBytes, FreeBytes int64
	Files, FreeFiles      int64 // inodes; 0, 0: it does not count them
}

// Left is what a host has, and has left.
type Left struct {
	Disks                           []Disk
	MemoryBytes, FreeMemoryBytes    int64
	ProcessesMost, ProcessesThatRun int64
}

// judge says what the host is short of, in order, each condition of a class once.
func (l Limits) judge(h Left) (out []records.NodeCondition) {
	whole := map[uint64]bool{} // devices that all members need
	for _, d := range h.Disks {
		whole[d.Device] = whole[d.Device] || d.Class == ""
	}
	for _, d := range h.Disks {
		if d.Class != "" && whole[d.Device] {
			continue
		}
		if text := l.shortDisk(d); text != "" {
			out = append(out, records.NodeCondition{Type: records.DiskPressure, Class: d.Class, Message: text})
		}
	}
	if l.MemoryBytes > 0 && h.MemoryBytes > 0 && h.FreeMemoryBytes < l.MemoryBytes {
		out = append(out, records.NodeCondition{Type: records.MemoryPressure, Message: fmt.Sprintf(
			"%s of %s memory is available, less than %s; see 'stead top pods' for who uses it, set or lower limits, or move members away",
			sizeText(h.FreeMemoryBytes), sizeText(h.MemoryBytes), sizeText(l.MemoryBytes))})
	}
	if least := h.ProcessesMost * int64(l.ProcessPercent) / 100; least > 0 && h.ProcessesMost-h.ProcessesThatRun < least {
		out = append(out, records.NodeCondition{Type: records.PIDPressure, Message: fmt.Sprintf(
			"%d of %d processes and threads are left, less than %d %%; end what makes them, or raise kernel.pid_max and kernel.threads-max",
			max(h.ProcessesMost-h.ProcessesThatRun, 0), h.ProcessesMost, l.ProcessPercent)})
	}
	slices.SortStableFunc(out, records.NodeCondition.Compare)
	return slices.CompactFunc(out, func(a, b records.NodeCondition) bool { return a.Compare(b) == 0 })
}

// shortDisk says what of a disk there is too little; "": nothing.
func (l Limits) shortDisk(d Disk) string {
	if l.DiskPercent <= 0 || d.TotalBytes <= 0 {
		return ""
	}
	const help = "make room on it, for example with 'stead volume ls' and 'stead volume reclaim', or give it more"
	// Divided first: a disk may have more bytes than a hundredth of what a number can be.
	least := min(d.TotalBytes/100*int64(l.DiskPercent), l.DiskBytes)
	switch {
	case d.FreeBytes < least:
		return fmt.Sprintf("the disk of %s has %s of %s free, less than %s; %s", d.Dir, sizeText(d.FreeBytes), sizeText(d.TotalBytes), sizeText(least), help)
	case d.Files > 0 && d.FreeFiles < d.Files/200*int64(l.DiskPercent):
		return fmt.Sprintf("the disk of %s has %d of %d inodes free, less than %d %%; %s", d.Dir, d.FreeFiles, d.Files, (l.DiskPercent+1)/2, help)
	}
	return ""
}

// sizeText is a size in the largest unit that leaves a figure before the point.
func sizeText(n int64) string {
	units := []string{"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"}
	f, i := float64(max(n, 0)), 0
	for ; f >= 1024 && i < len(units)-1; i++ {
		f /= 1024
	}
	return fmt.Sprintf("%.4g%s", f, units[i])
}

const (
	// beginTime is how long a host must be short of something before it says so; at the first look it says so at once.
	beginTime = 20 * time.Second
	// endTime is how long it must not have been short of it before it says that: kubelet's figure.
	endTime = 5 * time.Minute
)

// Tracker remembers between looks since when the host is short of what. It is for one goroutine.
type Tracker struct {
	Limits Limits
	looked bool
	known  []spell
}

// spell is a condition that was there at a look, and may be said.
type spell struct {
	records.NodeCondition
	began, seen time.Duration // by the caller's clock: first and last seen without an interruption
	said        bool
}

// Look takes what the host has at a moment of a clock that is never set, and returns what is to be said of it. wall is
// the same moment for people.
func (w *Tracker) Look(h Left, now time.Duration, wall time.Time) (said []records.NodeCondition) {
	short := w.Limits.judge(h)
	for _, c := range short {
		i := slices.IndexFunc(w.known, func(s spell) bool { return s.Compare(c) == 0 })
		if i < 0 {
			c.Status = "True"
			w.known = append(w.known, spell{NodeCondition: c, began: now})
			i = len(w.known) - 1
		}
		s := &w.known[i]
		s.seen, s.Message = now, c.Message
		if !s.said && (!w.looked || now-s.began >= beginTime) {
			s.said, s.LastTransitionTime = true, wall.UTC().Truncate(time.Second)
		}
	}
	w.looked = true
	w.known = slices.DeleteFunc(w.known, func(s spell) bool {
		return s.seen != now && (!s.said || now-s.seen >= endTime)
	})
	for _, s := range w.known {
		if s.said {
			said = append(said, s.NodeCondition)
		}
	}
	slices.SortFunc(said, records.NodeCondition.Compare)
	return said
}
