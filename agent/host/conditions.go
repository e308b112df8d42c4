package host

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/stead-project/stead/agent/pressure"
	"github.com/stead-project/stead/agent/volume"
	"github.com/stead-project/stead/agent/watchdog"
	"github.com/stead-project/stead/records"
)

const (
	// conditionsEvery is how often it is looked at what the host has left.
	conditionsEvery = 10 * time.Second
	// enoughDisk is free on a disk that is not short, whatever its size.
	enoughDisk = 10 << 30
)

func (o *Options) pressureLimits() pressure.Limits {
	return pressure.Limits{DiskPercent: o.DiskLeft, DiskBytes: enoughDisk, MemoryBytes: o.MemoryLeft, ProcessPercent: o.TasksLeft}
}

// Conditions looks at what conditions the host has now, in order. One goroutine at a time may call it.
func (m *Machine) Conditions(ctx context.Context) []records.NodeCondition {
	return inOrder(m.short.Look(m.left(ctx), watchdog.BootTime(), time.Now()), m.setUp.unavailable())
}

func inOrder(lists ...[]records.NodeCondition) []records.NodeCondition {
	all := slices.Concat(lists...)
	slices.SortStableFunc(all, records.NodeCondition.Compare)
	return all
}

// WatchConditions looks again and again until ctx ends, and gives take what the host is short of.
func (m *Machine) WatchConditions(ctx context.Context, take func([]records.NodeCondition)) {
	var before []records.NodeCondition
	for ok := true; ok; ok = m.awaitLook(ctx) {
		now := m.Conditions(ctx)
		if ctx.Err() != nil {
			return
		}
		take(now)
		if !records.SameConditions(before, now) {
			for _, c := range now {
				m.log.Warn("the host has a condition; no new member comes here", "condition", c.Type, "class", c.Class, "reason", c.Message)
			}
			if len(now) == 0 {
				m.log.Info("the host has no condition any more")
			}
		}
		before = now
	}
}

// awaitLook waits until it is time to look again; false: ctx has ended.
func (m *Machine) awaitLook(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-m.setUp.look.C():
	case <-time.After(conditionsEvery):
	}
	return true
}

// left is what the host has, as far as it can be seen: what cannot is short of nothing.
func (m *Machine) left(ctx context.Context) (h pressure.Left) {
	if disk, err := roomOf(m.root); err == nil {
		h.Disks = append(h.Disks, diskOf(disk, ""))
	}
	if images, err := m.Runtime.ImageDisks(ctx); err == nil {
		for _, i := range images {
			if disk, err := roomOf(i.Dir); err == nil {
				h.Disks = append(h.Disks, diskOf(disk, ""))
			}
		}
	}
	rooms := m.Meter.Rooms()
	for _, class := range slices.Sorted(maps.Keys(rooms)) {
		h.Disks = append(h.Disks, diskOf(rooms[class], class))
	}
	h.MemoryBytes, h.FreeMemoryBytes, _ = memoryLeft()
	h.ProcessesMost, h.ProcessesThatRun, _ = processesLeft()
	return h
}

func roomOf(dir string) (volume.Room, error) {
	f, err := os.Open(dir)
	if err != nil {
		return volume.Room{}, err
	}
	defer f.Close()
	return volume.RoomAt(f)
}

// diskOf is a disk on which a class is; that of LocalClass is like any other.
func diskOf(r volume.Room, class string) pressure.Disk {
	return pressure.Disk{
		Dir: r.Dir, Class: class, Device: r.Device, TotalBytes: r.TotalBytes, FreeBytes: r.FreeBytes, Files: r.Files, FreeFiles: r.FreeFiles,
	}
}

// memoryLeft is the host's memory, and what programs can have of it without others being written out.
func memoryLeft() (total, free int64, err error) {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, 0, err
	}
	var unused int64
	if _, err := fmt.Sscanf(string(text), "MemTotal: %d kB\nMemFree: %d kB\nMemAvailable: %d kB", &total, &unused, &free); err != nil {
		return 0, 0, fmt.Errorf("read /proc/meminfo: %w", err)
	}
	return total << 10, free << 10, nil
}

// processesLeft is how many processes and threads the kernel allows, and how many there are.
func processesLeft() (most, there int64, err error) {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0, 0, err
	}
	var a, b, c string
	var run int64
	if _, err := fmt.Sscanf(string(text), "%s %s %s %d/%d", &a, &b, &c, &run, &there); err != nil {
		return 0, 0, fmt.Errorf("read /proc/loadavg: %w", err)
	}
	most, err = mostProcesses()
	return most, there, err
}
