package images

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
)

// ahead is a Preparer on a runtime of functions.
type ahead struct {
	t *testing.T
	p *Preparer

	mu     sync.Mutex
	pulled []string         // in their order
	now    int              // pulls that are under way
	most   int              // at once
	fail   map[string]error // what becomes of a pull; nil: it succeeds
	hang   map[string]bool  // until it is given up
	said   []records.Prepared
	files  map[string]records.Files // Secrets by name; others were not sent
}

func newAhead(t *testing.T) *ahead {
	a := &ahead{t: t, fail: map[string]error{}, hang: map[string]bool{}, files: map[string]records.Files{}}
	a.p = NewPreparer(PreparerConfig{
		Ensure: a.ensure, RetryFirst: 10 * time.Second, RetryMost: time.Minute, Log: slog.New(slog.DiscardHandler),
		Changed: func(now []records.Prepared) { a.with(func() { a.said = now }) },
		Find: func(_ string, _ spec.Namespace, name string) (records.Files, bool) {
			a.mu.Lock()
			defer a.mu.Unlock()
			f, known := a.files[name]
			return f, known
		},
	})
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	group.Go(func() { a.p.Run(ctx) })
	t.Cleanup(func() { cancel(); group.Wait() })
	return a
}

// with has what the functions know changed or looked at.
func (a *ahead) with(do func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	do()
}

func (a *ahead) ensure(ctx context.Context, p runtime.Pull) (runtime.Image, error) {
	if _, err := p.Tried(); err != nil {
		return runtime.Image{}, err
	}
	a.mu.Lock()
	a.pulled = append(a.pulled, p.Image+" "+p.Policy)
	a.now++
	a.most = max(a.most, a.now)
	hang := a.hang[p.Image]
	a.mu.Unlock()
	if hang {
		<-ctx.Done()
	} else {
		time.Sleep(time.Second)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.now--
	return runtime.Image{Name: p.Image}, errors.Join(ctx.Err(), a.fail[p.Image])
}

// says fails unless this is what is said of a set's revision: "done", a cause, or "".
func (a *ahead) says(set string, revision spec.RevisionHash, want string) {
	a.t.Helper()
	synctest.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	got := ""
	for _, s := range a.said {
		if s.Ref == ref(set) && s.Revision == revision {
			got = string(s.Cause)
			if s.Done {
				got = "done"
			}
		}
	}
	if got != want {
		a.t.Errorf("of %s %s is said %q, want %q", set, revision, got, want)
	}
}

func ref(set string) spec.SetRef { return spec.SetRef{Namespace: "default", Name: spec.SetName(set)} }

func preparation(set string, revision spec.RevisionHash, refs ...string) records.Preparation {
	p := records.Preparation{Ref: ref(set), Revision: revision}
	for _, r := range refs {
		p.Images = append(p.Images, records.NewImage{Image: r, Policy: spec.PullIfNotPresent})
	}
	return p
}

func TestImagesOfAnUpdateArePulledAheadAndSaidOnlyWhenAllAreThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAhead(t)
		a.p.Take([]records.Preparation{preparation("db", "h2", "one", "two")})
		time.Sleep(1500 * time.Millisecond)
		a.says("db", "h2", "")
		if got := a.p.Images(); !slices.Equal(got, []string{"one", "two"}) {
			t.Errorf("kept are %v", got)
		}
		time.Sleep(time.Second)
		a.says("db", "h2", "done")
		a.p.Take([]records.Preparation{preparation("db", "h2", "one", "two")}) // sent again
		time.Sleep(time.Hour)
		a.mu.Lock()
		defer a.mu.Unlock()
		if want := []string{"one IfNotPresent", "two IfNotPresent"}; !slices.Equal(a.pulled, want) {
			t.Errorf("pulled %v, want %v", a.pulled, want)
		}
	})
}

func TestAPullThatFailsIsSaidAndTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAhead(t)
		a.with(func() { a.fail["one"] = fmt.Errorf("no such image: %w", runtime.ErrImageMissing) })
		a.p.Take([]records.Preparation{preparation("db", "h2", "one")})
		time.Sleep(2 * time.Second)
		a.says("db", "h2", string(causes.ImageMissing))
		a.with(func() { a.fail["one"] = fmt.Errorf("refused: %w", runtime.ErrImagePull) })
		time.Sleep(10 * time.Second)
		a.says("db", "h2", string(causes.ImagePull))
		a.with(func() { delete(a.fail, "one") })
		a.p.Retry() // an image was loaded, or a Secret changed
		time.Sleep(2 * time.Second)
		a.says("db", "h2", "done")
	})
}

func TestWhatSaysNothingOfAnImageIsNotSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAhead(t)
		a.with(func() { a.fail["one"] = fmt.Errorf("no answer: %w", runtime.ErrUnavailable) })
		secret := preparation("private", "h2", "two")
		secret.PullSecrets = []spec.PullSecret{{Name: "key"}}
		a.p.Take([]records.Preparation{preparation("db", "h2", "one"), secret})
		time.Sleep(5 * time.Second)
		a.says("db", "h2", "")
		a.says("private", "h2", "")
		a.with(func() {
			if !slices.Equal(a.pulled, []string{"one IfNotPresent"}) {
				t.Errorf("pulled %v without the Secret", a.pulled)
			}
		})
		a.with(func() {
			a.files["key"] = records.Files{Kind: "Secret", Namespace: "default", Name: "key", Absent: true}
		})
		a.p.Retry()
		time.Sleep(2 * time.Second)
		a.says("private", "h2", "done")
	})
}

func TestWhatIsNotWantedAnyMoreEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAhead(t)
		a.with(func() { a.hang["one"] = true })
		a.p.Take([]records.Preparation{preparation("db", "h2", "one")})
		time.Sleep(time.Second)
		a.p.Take([]records.Preparation{preparation("db", "h3", "two")})
		time.Sleep(1500 * time.Millisecond)
		a.says("db", "h2", "")
		a.says("db", "h3", "done")
		a.p.Take(nil)
		a.says("db", "h3", "")
		kept := a.p.Images()
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.now != 0 || len(kept) != 0 {
			t.Errorf("%d pulls are under way, and %v is kept", a.now, kept)
		}
	})
}

func TestFewImagesArePulledAheadAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAhead(t)
		var list []records.Preparation
		for i := range 9 {
			list = append(list, preparation(fmt.Sprint("db", i), "h2", fmt.Sprint("image", i)))
		}
		a.p.Take(list)
		time.Sleep(time.Minute)
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.most != pullsAhead || len(a.pulled) != len(list) {
			t.Errorf("%d of %d images were pulled, at most %d at once; want %d", len(a.pulled), len(list), a.most, pullsAhead)
		}
	})
}
