package images

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stead-project/stead/agent/runtime"
)

func TestTheMarksOfADisk(t *testing.T) {
	const gib = 1 << 30
	for _, c := range []struct {
		name           string
		high, low      int
		total, free    int64
		reserve        int64
		full, relieved bool
	}{
		{"a disk that is half used", 85, 80, 100 * gib, 50 * gib, 5 * gib, false, true},
		{"between the marks", 85, 80, 100 * gib, 18 * gib, 5 * gib, false, false},
		{"at the high mark", 85, 80, 100 * gib, 15 * gib, 5 * gib, true, false},
		{"a byte below it", 85, 80, 100 * gib, 15*gib + 1, 5 * gib, false, false},
		{"at the low mark", 85, 80, 100 * gib, 20 * gib, 5 * gib, false, true},
		{"no free byte", 85, 80, 100 * gib, 0, 5 * gib, true, false},
		{"a small disk, on which pulls are refused before the mark", 85, 80, 4 * gib, gib - 1, gib, true, false},
		{"which is relieved when there is room for them", 85, 80, 4 * gib, gib + gib/4, gib, false, true},
		{"but not at once", 85, 80, 4 * gib, gib + 1, gib, false, false},
		{"turned off", 0, 80, 100 * gib, 0, 5 * gib, false, false},
		{"a disk of which nothing is known", 85, 80, 0, 0, 0, false, true},
		{"only a full disk", 100, 0, 100 * gib, 5 * gib, 5 * gib, false, false},
	} {
		m, d := Marks{High: c.high, Low: c.low}, runtime.ImageDisk{TotalBytes: c.total, FreeBytes: c.free, ReserveBytes: c.reserve}
		if full, relieved := m.full(d), m.relieved(d); full != c.full || relieved != c.relieved {
			t.Errorf("%s: full %v, relieved %v, want %v, %v", c.name, full, relieved, c.full, c.relieved)
		}
	}
}

func TestWhichImagesMayBeRemoved(t *testing.T) {
	now := time.Now()
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	image := func(name string, minutes int) runtime.StoredImage {
		return runtime.StoredImage{Name: "reg.example/" + name, Digest: name, Pulled: true, Since: ago(time.Duration(minutes) * time.Minute)}
	}
	old := seen{first: ago(time.Hour)}
	used := func(d time.Duration) seen { return seen{first: ago(time.Hour), used: ago(d)} }
	loaded, alias := image("loaded", 60), image("alias", 60)
	loaded.Pulled, alias.Digest = false, "needed"
	all := []runtime.StoredImage{image("needed", 60), alias, loaded, image("new", 60), image("just", 60), image("b", 30), image("a", 40), image("lately", 60), image("long-ago", 10), image("aa", 30)}
	known := map[string]seen{
		"needed": old, "loaded": old, "new": {first: ago(minAge - 1)}, "just": used(minAge - 1), "a": old, "aa": old, "b": old,
		"lately": used(3 * time.Minute), "long-ago": used(30 * time.Minute),
	}
	got := judge(all, named([]string{"reg.example/needed"}), known, now)
	var names []string
	for _, i := range got.remove {
		names = append(names, i.Digest)
	}
	if want := []string{"a", "aa", "b", "long-ago", "lately"}; !slices.Equal(names, want) {
		t.Errorf("removed in the order %q, want %q", names, want)
	}
	if got.needed != 2 || got.loaded != 1 || got.young != 2 {
		t.Errorf("%d are needed, %d loaded, %d young; want 2, 1, 2", got.needed, got.loaded, got.young)
	}
}

func TestNamesOfTemplatesAreFoundHoweverTheyAreKept(t *testing.T) {
	got := named([]string{"box", "reg.example/a:1"})
	for _, want := range []string{"box", "docker.io/library/box:latest", "reg.example/a:1"} {
		if !got[want] {
			t.Errorf("%v lacks %s", got, want)
		}
	}
}

// shelf is a store on a disk of 100 bytes.
type shelf struct {
	mu         sync.Mutex
	images     []runtime.StoredImage
	bytes      map[string]int64 // by name
	other      int64            // used by others
	containers []string
	removed    []string
	err        error
	onRemove   func() // called before an image is removed
}

// before has f called before each removal.
func (s *shelf) before(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onRemove = f
}

func (s *shelf) put(name string, bytes int64, pulled bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.images = append(s.images, runtime.StoredImage{Name: name, Digest: "sha256:" + name, Pulled: pulled, Since: time.Now()})
	s.bytes[name] = bytes
}

func (s *shelf) StoredImages(context.Context) ([]runtime.StoredImage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.images), s.err
}

func (s *shelf) ImageDisks(context.Context) ([]runtime.ImageDisk, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	free := 100 - s.other
	for _, i := range s.images {
		free -= s.bytes[i.Name]
	}
	return []runtime.ImageDisk{{Dir: "/ctd", TotalBytes: 100, FreeBytes: free, ReserveBytes: 5}}, nil
}

func (s *shelf) List(context.Context) (out []runtime.Status, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, image := range s.containers {
		out = append(out, runtime.Status{Image: image})
	}
	return out, s.err
}

func (s *shelf) RemoveImage(_ context.Context, i runtime.StoredImage) error {
	s.mu.Lock()
	f := s.onRemove
	s.mu.Unlock()
	if f != nil {
		f()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	before := len(s.images)
	s.images = slices.DeleteFunc(s.images, func(has runtime.StoredImage) bool { return has == i })
	if len(s.images) == before {
		return runtime.ErrNotFound
	}
	s.removed = append(s.removed, i.Name)
	return nil
}

// rig runs a collector in a bubble.
type rig struct {
	*shelf
	log    bytes.Buffer
	wanted []string // guarded by mu
}

func (r *rig) want(refs ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wanted = refs
}

func (r *rig) gone() string {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.removed, " ")
}

func collecting(t *testing.T, marks Marks, f func(t *testing.T, r *rig)) {
	synctest.Test(t, func(t *testing.T) {
		r := &rig{shelf: &shelf{bytes: map[string]int64{}}}
		k := New(Config{Store: r, Marks: marks, Now: time.Now, Log: slog.New(slog.NewTextHandler(&r.log, nil)), Wanted: func() []string {
			r.mu.Lock()
			defer r.mu.Unlock()
			return slices.Clone(r.wanted)
		}})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); k.Run(ctx) }()
		f(t, r)
		cancel()
		<-done
	})
}

func TestImagesUsedLongestAgoAreRemovedUntilTheLowMark(t *testing.T) {
	collecting(t, Marks{High: 85, Low: 60}, func(t *testing.T, r *rig) {
		r.put("old", 10, true)
		r.put("needed", 10, true)
		r.put("run", 10, true)
		r.put("loaded", 10, false)
		r.want("old", "needed")
		time.Sleep(10 * time.Minute)
		r.want("needed")
		r.mu.Lock()
		r.containers = []string{"run"} // of a life of which the agent knows no more
		r.mu.Unlock()
		time.Sleep(10 * time.Minute)
		r.put("newer", 20, true)
		r.want("needed", "newer")
		time.Sleep(10 * time.Minute)
		r.want("needed")
		time.Sleep(10 * time.Minute)
		if got := r.gone(); got != "" {
			t.Fatalf("%s was removed although there is room", got)
		}
		r.put("last", 30, true) // 90 are used
		time.Sleep(90 * time.Second)
		if got := r.gone(); got != "old newer" {
			t.Errorf("removed %q, want the one that was used longest ago, and then newer, down to the mark", got)
		}
		if said := r.log.String(); !strings.Contains(said, "image removed") || !strings.Contains(said, "image=old") {
			t.Errorf("the log says %q", said)
		}
	})
}

func TestAFullDiskWithoutAnythingToRemoveIsLoggedOnce(t *testing.T) {
	collecting(t, Marks{High: 85, Low: 80}, func(t *testing.T, r *rig) {
		r.put("loaded", 60, false)
		r.put("needed", 30, true)
		r.want("needed")
		time.Sleep(time.Hour)
		if got := r.gone(); got != "" {
			t.Fatalf("%s was removed", got)
		}
		said := r.log.String()
		if strings.Count(said, "\n") != 1 || !strings.Contains(said, "1 are needed by members, and 1 were loaded from archives") {
			t.Errorf("the log says %q", said)
		}
	})
}

func TestNothingIsRemovedTooEarlyOrBlindly(t *testing.T) {
	t.Run("turned off", func(t *testing.T) {
		collecting(t, Marks{}, func(t *testing.T, r *rig) {
			r.put("a", 100, true)
			time.Sleep(time.Hour)
			if got := r.gone(); got != "" || r.log.Len() > 0 {
				t.Errorf("removed %q, said %q", got, r.log.String())
			}
		})
	})
	t.Run("too young", func(t *testing.T) {
		collecting(t, Marks{High: 85, Low: 80}, func(t *testing.T, r *rig) {
			r.put("a", 100, true)
			time.Sleep(minAge - time.Second)
			if got := r.gone(); got != "" {
				t.Errorf("%s was removed after less than %s", got, minAge)
			}
			time.Sleep(2 * lookTime)
			if got := r.gone(); got != "a" {
				t.Errorf("removed %q later", got)
			}
		})
	})
	t.Run("the runtime is away", func(t *testing.T) {
		collecting(t, Marks{High: 85, Low: 80}, func(t *testing.T, r *rig) {
			r.put("a", 100, true)
			time.Sleep(time.Minute)
			r.mu.Lock()
			r.err = runtime.ErrUnavailable
			r.mu.Unlock()
			time.Sleep(time.Hour)
			if got := r.gone(); got != "" || r.log.Len() > 0 {
				t.Errorf("removed %q, said %q", got, r.log.String())
			}
		})
	})
	t.Run("a life came meanwhile", func(t *testing.T) {
		collecting(t, Marks{High: 85, Low: 10}, func(t *testing.T, r *rig) {
			r.put("a", 50, true)
			r.put("b", 50, true)
			r.before(func() { r.want("b") })
			time.Sleep(10 * time.Minute)
			if got := r.gone(); got != "a" {
				t.Errorf("removed %q, want only the one that was not wanted", got)
			}
		})
	})
	t.Run("the name is another's now", func(t *testing.T) {
		collecting(t, Marks{High: 85, Low: 10}, func(t *testing.T, r *rig) {
			r.put("a", 50, true)
			r.put("b", 50, true)
			first := true
			r.before(func() {
				r.mu.Lock()
				defer r.mu.Unlock()
				if first {
					r.images[0].Digest, first = "another", false
				}
			})
			time.Sleep(minAge + lookTime/2)
			if got := r.gone(); got != "b" || strings.Contains(r.log.String(), "remove image") {
				t.Errorf("removed %q, said %s", got, r.log.String())
			}
		})
	})
}
