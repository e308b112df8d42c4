package images

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/stead-project/stead/agent/files"
	"github.com/stead-project/stead/agent/registry"
	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/internal/backoff"
	"github.com/stead-project/stead/internal/notify"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
)

const (
	// pullsAhead is how many images are pulled at once for updates: fewer than a runtime pulls by default, so that a life
	// that needs its image now does not wait for them.
	pullsAhead = 2
	// aheadTime bounds one pull.
	aheadTime = 30 * time.Minute
)

// PreparerConfig is what a Preparer needs: all fields.
type PreparerConfig struct {
	// Ensure makes an image present.
	Ensure func(context.Context, runtime.Pull) (runtime.Image, error)
	// Find finds the Secrets with credentials.
	Find files.Lookup
	// Changed takes what there is to say of all preparations after each change, in order. It does not block.
	Changed func([]records.Prepared)
	// RetryFirst doubles up to RetryMost between two pulls that failed.
	RetryFirst, RetryMost time.Duration
	Log                   *slog.Logger
}

// Preparer pulls the images of updates before members are stopped (records.Preparation). It starts nothing, and touches
// nothing of a life. Safe for concurrent use.
type Preparer struct {
	c      PreparerConfig
	places chan struct{}
	wake   *notify.Signal // there are new jobs

	mu   sync.Mutex
	jobs map[spec.SetRef]*job
}

// job is one preparation.
type job struct {
	records.Preparation
	said    records.Prepared // guarded by the preparer's mu
	started bool             // the same
	ended   chan struct{}    // closed when it is not wanted any more
	retry   *notify.Signal   // what failed is to be tried again at once
}

// NewPreparer makes one; Run runs it.
func NewPreparer(c PreparerConfig) *Preparer {
	return &Preparer{c: c, places: make(chan struct{}, pullsAhead), wake: notify.New(), jobs: map[spec.SetRef]*job{}}
}

// Take replaces all preparations: those that are not in list end.
func (p *Preparer) Take(list []records.Preparation) {
	p.mu.Lock()
	defer p.mu.Unlock()
	wanted := map[spec.SetRef]bool{}
	for _, w := range list[:min(len(list), records.MaxPreparations)] {
		wanted[w.Ref] = true
		if old := p.jobs[w.Ref]; old != nil {
			if old.Revision == w.Revision && slices.Equal(old.Images, w.Images) && slices.Equal(old.PullSecrets, w.PullSecrets) {
				continue
			}
			close(old.ended)
		}
		p.jobs[w.Ref] = &job{
			Preparation: w, said: records.Prepared{Ref: w.Ref, Revision: w.Revision}, ended: make(chan struct{}), retry: notify.New(),
		}
	}
	for ref, j := range p.jobs {
		if !wanted[ref] {
			close(j.ended)
			delete(p.jobs, ref)
		}
	}
	p.say()
	p.wake.Notify()
}

// Retry has what failed tried again at once: Secrets or images have changed.
func (p *Preparer) Retry() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, j := range p.jobs {
		j.retry.Notify()
	}
}

// Images are those of all preparations, as templates write them: they are not to be removed.
func (p *Preparer) Images() (refs []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, j := range p.jobs {
		for _, i := range j.Images {
			refs = append(refs, i.Image)
		}
	}
	return refs
}

// Run works until ctx ends.
func (p *Preparer) Run(ctx context.Context) {
	var group sync.WaitGroup
	defer group.Wait()
	for {
		p.mu.Lock()
		for _, j := range p.jobs {
			if !j.started {
				j.started = true
				group.Go(func() { p.work(ctx, j) })
			}
		}
		p.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-p.wake.C():
		}
	}
}

// work pulls until all images of a job are there, or nobody wants them any more.
func (p *Preparer) work(ctx context.Context, j *job) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-j.ended:
			cancel()
		case <-ctx.Done():
		}
	}()
	for n := 1; ; n++ {
		err := p.pullAll(ctx, j)
		if ctx.Err() != nil {
			return
		}
		changed := p.note(j, err)
		log := p.c.Log.With("set", j.Ref.String(), "revision", string(j.Revision))
		if err == nil {
			log.Info("images of an update pulled")
			return
		}
		if changed {
			log.Warn("images of an update not pulled", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-j.retry.C():
		case <-time.After(backoff.After(p.c.RetryFirst, p.c.RetryMost, n)):
		}
	}
}

// errUnsent: what is needed for a pull was not sent yet.
var errUnsent = errors.New("not sent yet")

func (p *Preparer) pullAll(ctx context.Context, j *job) error {
	for _, i := range j.Images {
		if err := p.pull(ctx, j, i); err != nil {
			return err
		}
	}
	return nil
}

func (p *Preparer) pull(ctx context.Context, j *job, i records.NewImage) error {
	select {
	case p.places <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-p.places }()
	if files.UnsentSecret(j.Ref.Namespace, j.PullSecrets, p.c.Find) != "" {
		return errUnsent
	}
	found, unreadable := files.CredentialsIn(j.Ref.Namespace, j.PullSecrets, p.c.Find)
	ctx, cancel := context.WithTimeout(ctx, aheadTime)
	defer cancel()
	_, err := p.c.Ensure(ctx, runtime.Pull{Image: i.Image, Policy: i.Policy, Credentials: func() ([]registry.Login, error) {
		return found.Keyring.For(i.Image), unreadable
	}})
	return found.Explain(err, i.Policy)
}

// note takes over what came of a job, and reports whether that is something else than before. What says nothing of the image is under way still: containerd is away, or a
// Secret has not come.
func (p *Preparer) note(j *job, err error) (changed bool) {
	now := records.Prepared{Ref: j.Ref, Revision: j.Revision, Done: err == nil}
	switch {
	case err == nil, errors.Is(err, errUnsent), errors.Is(err, runtime.ErrUnavailable):
	case errors.Is(err, runtime.ErrImageMissing):
		now.Cause, now.Message = causes.ImageMissing, err.Error()
	default:
		now.Cause, now.Message = causes.ImagePull, err.Error()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.jobs[j.Ref] != j || j.said == now {
		return false
	}
	j.said = now
	p.say()
	return true
}

// say hands on what there is to say; the caller holds the lock.
func (p *Preparer) say() {
	all := make([]records.Prepared, 0, len(p.jobs))
	for _, j := range p.jobs {
		if j.said.Done || j.said.Cause != "" { // what is under way is not said: each word is a write of the store
			all = append(all, j.said)
		}
	}
	slices.SortFunc(all, records.Prepared.Compare)
	p.c.Changed(all)
}
