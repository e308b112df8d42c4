package volume

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/internal/backoff"
	"github.com/stead-project/stead/internal/deeptree"
	"github.com/stead-project/stead/internal/wrap"
	"github.com/stead-project/stead/records"
)

const (
	// firstMeasure is how long after its start an agent measures for the first time: members start first.
	firstMeasure = time.Minute
	// measureEvery is the least time between two measurements of all volumes, and measureShare how many times
	// as long as the last one took.
	measureEvery = 10 * time.Minute
	measureShare = 100
	// workTime is for how long files are looked at before a rest, which takes restShare times as long.
	workTime  = 5 * time.Millisecond
	restShare = 9
	// busyPercent is the share of the last ten seconds in which somebody waited for a disk, from which on nothing
	// is measured; busyRest is how long until it is looked at again.
	busyPercent = 40
	busyRest    = 5 * time.Second
)

// Meter knows how full the volumes of a node are. What is free it asks the file system, whenever somebody asks. What
// the files in a directory take it counts seldom and slowly: at most a tenth of the time, and not while the
// disks of the host are busy, so that no member waits for it.
type Meter struct {
	v     *Volumes
	log   *slog.Logger
	busy  func() bool                                     // the host's disks have no time; tests say
	rest  func(ctx context.Context, d time.Duration) bool // backoff.Sleep; tests count
	clock func() time.Duration                            // monotonic

	mu       sync.Mutex
	measured map[records.VolumeID]measured
	asking   map[string]chan struct{} // by class, or image: somebody waits for its file system; closed then
	disks    map[string]Room          // likewise, as its file system last said
}

// measured is what the files of a volume took at a moment of the Meter's clock.
type measured struct {
	bytes int64
	at    time.Duration
}

// NewMeter returns a Meter that has not measured anything; Run does that.
func NewMeter(v *Volumes, log *slog.Logger) *Meter {
	began := time.Now()
	return &Meter{
		v: v, log: log, busy: disksBusy, rest: backoff.Sleep, clock: func() time.Duration { return time.Since(began) },
		measured: map[records.VolumeID]measured{}, asking: map[string]chan struct{}{}, disks: map[string]Room{},
	}
}

// Run measures again and again until ctx ends.
func (m *Meter) Run(ctx context.Context) {
	for wait := firstMeasure; m.rest(ctx, wait); {
		began := m.clock()
		if err := m.measure(ctx); err != nil && ctx.Err() == nil {
			m.log.Info("some volumes not measured", "reason", err.Error())
		}
		wait = max(measureEvery, measureShare*(m.clock()-began)/(restShare+1))
	}
}

// measure counts what the files of each volume take. Of one that cannot be read the figure before stays.
func (m *Meter) measure(ctx context.Context) error {
	all, err := m.v.allMade()
	errs := []error{err}
	there := map[records.VolumeID]bool{}
	for _, k := range all {
		there[k.Volume] = true
		if k.Image { // its file system knows
			errs = append(errs, m.v.fit(ctx, k))
			continue
		}
		bytes, err := m.count(ctx, k)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		m.mu.Lock()
		m.measured[k.Volume] = measured{bytes, m.clock()}
		m.mu.Unlock()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.measured, func(id records.VolumeID, _ measured) bool { return !there[id] })
	return errors.Join(errs...)
}

// allMade are the records of the volumes that this node made and has not erased.
func (v *Volumes) allMade() (all []made, err error) {
	names, err := v.records.names(madeDir)
	errs := []error{err}
	for _, name := range names {
		var k made
		there, err := v.records.read(madeDir, name, &k)
		if there {
			all = append(all, k)
		}
		errs = append(errs, err)
	}
	return all, errors.Join(errs...)
}

// find opens the data of a volume, in its place or in the trash; the caller closes it.
func (v *Volumes) find(k made) (_ *os.File, err error) {
	defer wrap.Error(&err, "measure volume %s", k.Volume)
	root, err := v.open(k.Class)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	at := placeOf(k.identity(), k.Claim)
	if here, err := readOwner(root, at); err != nil || here.unsealed() != k.owner {
		at = filepath.Join(v.trashAt(k.Class), string(k.Volume))
	}
	return root.Open(filepath.Join(at, dataDir))
}

// count is what the files of a volume take on the disk. A file with several names counts once, if all of them are
// in the volume.
func (m *Meter) count(ctx context.Context, k made) (bytes int64, err error) {
	if !m.idle(ctx) {
		return 0, ctx.Err()
	}
	top, err := m.v.find(k)
	if err != nil {
		return 0, err
	}
	defer top.Close()
	since := m.clock()
	nothing := func(int, string) error { return nil }
	all := deeptree.Visits{Within: true, File: nothing, Dir: nothing}
	all.Look = func(st *unix.Stat_t) error {
		share := int64(1)
		if st.Mode&unix.S_IFMT != unix.S_IFDIR {
			share = max(1, int64(st.Nlink))
		}
		bytes += st.Blocks * 512 / share
		worked := m.clock() - since
		if worked < workTime {
			return nil
		}
		if !m.rest(ctx, restShare*worked) || !m.idle(ctx) {
			return ctx.Err()
		}
		since = m.clock()
		return nil
	}
	return bytes, all.Walk(ctx, top)
}

// idle waits until the disks of the host have time; false: ctx ended.
func (m *Meter) idle(ctx context.Context) bool {
	for m.busy() {
		if !m.rest(ctx, busyRest) {
			return false
		}
	}
	return ctx.Err() == nil
}

// disksBusy reports whether somebody waits for a disk most of the time, as far as the kernel says it.
func disksBusy() bool {
	text, err := os.ReadFile("/proc/pressure/io")
	return err == nil && waitShare(string(text)) >= busyPercent
}

// waitShare is the first figure of a file of /proc/pressure: the share of the last ten seconds, in percent.
func waitShare(text string) float64 {
	_, rest, _ := strings.Cut(text, "avg10=")
	number, _, _ := strings.Cut(rest, " ")
	share, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0
	}
	return share
}

// Uses says how full each volume is that this node made, also in the trash, by its name. A file system that does not
// answer in a moment is left out.
func (m *Meter) Uses() []runtime.VolumeUse {
	all, err := m.v.allMade()
	if err != nil {
		m.log.Info("some volumes not listed", "reason", err.Error())
	}
	classes, images := map[string]bool{}, map[string]look{}
	for _, k := range all {
		if k.Image {
			images[imageName(k)] = func() (Room, error) { return m.v.roomIn(k) }
		} else {
			classes[k.Class] = true
		}
	}
	looks := m.ofClasses(slices.Collect(maps.Keys(classes)))
	maps.Copy(looks, images)
	rooms := m.rooms(looks)
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []runtime.VolumeUse
	for _, k := range all {
		use := runtime.VolumeUse{ID: k.identity(), Claim: k.Claim, Volume: k.Volume, UsedBytes: -1, FreeBytes: -1, TotalBytes: -1}
		if k.Image {
			m.useOfImage(&use, k, rooms)
		} else if disk, known := rooms[k.Class]; known {
			use.FreeBytes, use.TotalBytes = disk.FreeBytes, disk.TotalBytes
		}
		if seen, known := m.measured[k.Volume]; known {
			use.UsedBytes, use.Age = seen.bytes, m.clock()-seen.at
		}
		out = append(out, use)
	}
	slices.SortFunc(out, func(a, b runtime.VolumeUse) int { return strings.Compare(string(a.Volume), string(b.Volume)) })
	return out
}
