package images

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"time"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/internal/backoff"
	"github.com/stead-project/stead/internal/trouble"
)

// lookTime is how often the disks are looked at.
const lookTime = time.Minute

// ImageStore keeps a node's images; agent/runtime/containerdrt is one.
type ImageStore interface {
	// StoredImages lists what is there.
	StoredImages(ctx context.Context) ([]runtime.StoredImage, error)
	// ImageDisks are the disks on which they are, as far as this host sees them.
	ImageDisks(ctx context.Context) ([]runtime.ImageDisk, error)
	// List looks at the containers that are there: each needs its image.
	List(ctx context.Context) ([]runtime.Status, error)
	// RemoveImage removes a pulled image, and returns when its room is free. ErrNotFound: the name
	// is another image's now, or nobody's.
	RemoveImage(ctx context.Context, i runtime.StoredImage) error
}

// Config is what a Collector needs: all fields.
type Config struct {
	Store ImageStore
	Marks Marks
	// Wanted are the images of the lives that are, or are to be, on this node, as their templates
	// write them.
	Wanted func() []string
	Now    func() time.Time
	Log    *slog.Logger
}

// Collector removes images. What it remembers of their use it knows since it runs.
type Collector struct {
	c     Config
	known map[string]seen // by digest
	stuck trouble.Last
}

// New makes a collector; Run runs it.
func New(c Config) *Collector { return &Collector{c: c, known: map[string]seen{}} }

// Run looks at the disks again and again until ctx ends.
func (k *Collector) Run(ctx context.Context) {
	if k.c.Marks.High == 0 {
		return
	}
	for ok := true; ok; ok = backoff.Sleep(ctx, lookTime) {
		if err := k.look(ctx); ctx.Err() == nil && k.stuck.IsErr(err) {
			k.c.Log.Warn("disk with images too full", "reason", err.Error())
		}
	}
}

// look removes what is to be removed now. Its error says why the disk stays too full.
func (k *Collector) look(ctx context.Context) error {
	all, err := k.c.Store.StoredImages(ctx)
	if err != nil {
		return nil // the runtime is away, which others say
	}
	wanted := k.c.Wanted()
	k.remember(all, named(wanted))
	full, err := k.fullDisk(ctx)
	if err != nil || full == nil {
		return err
	}
	containers, err := k.c.Store.List(ctx)
	if err != nil {
		return nil
	}
	for _, s := range containers {
		wanted = append(wanted, s.Image)
	}
	what := judge(all, named(wanted), k.known, k.c.Now())
	for _, i := range what.remove {
		if err := k.remove(ctx, i); err != nil {
			return err
		}
		relieved, err := k.relieved(ctx)
		if err != nil || relieved {
			return err
		}
	}
	if what.young > 0 {
		return nil // the next look may remove them
	}
	return fmt.Errorf("the disk of %s has %d %% free, and no image is left that may be removed: %d are needed by members, and "+
		"%d were loaded from archives, or by an earlier version, and may be in no registry; make room on it",
		full.Dir, 100*full.FreeBytes/max(full.TotalBytes, 1), what.needed, what.loaded)
}

// remember notes which images are there, and which of them are needed now.
func (k *Collector) remember(all []runtime.StoredImage, needed map[string]bool) {
	now, there := k.c.Now(), map[string]bool{}
	for _, i := range all {
		there[i.Digest] = true
		s, known := k.known[i.Digest]
		if !known {
			s.first = now
		}
		if needed[i.Name] {
			s.used = now
		}
		k.known[i.Digest] = s
	}
	maps.DeleteFunc(k.known, func(digest string, _ seen) bool { return !there[digest] })
}

// remove removes one image, unless a life needs it since it was judged.
func (k *Collector) remove(ctx context.Context, i runtime.StoredImage) error {
	if named(k.c.Wanted())[i.Name] {
		return nil
	}
	if err := k.c.Store.RemoveImage(ctx, i); errors.Is(err, runtime.ErrNotFound) {
		return nil
	} else if err != nil {
		return fmt.Errorf("remove image %q: %w", i.Name, err)
	}
	k.c.Log.Info("image removed: the disk is too full, and nothing needs it", "image", i.Name, "digest", i.Digest)
	return nil
}

// fullDisk is one on which there is too little room; nil: there is none.
func (k *Collector) fullDisk(ctx context.Context) (*runtime.ImageDisk, error) {
	disks, err := k.c.Store.ImageDisks(ctx)
	for i := range disks {
		if k.c.Marks.full(disks[i]) {
			return &disks[i], err
		}
	}
	return nil, err
}

// relieved reports that enough was removed.
func (k *Collector) relieved(ctx context.Context) (bool, error) {
	disks, err := k.c.Store.ImageDisks(ctx)
	for _, d := range disks {
		if !k.c.Marks.relieved(d) {
			return false, err
		}
	}
	return err == nil, err
}
