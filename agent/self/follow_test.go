package self

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/records"
)

// opened is an Opener of one directory; "": there is none.
type opened string

func (o opened) OpenDir(context.Context, runtime.ContainerID, string) (*os.File, error) {
	if o == "" {
		return nil, runtime.ErrNotFound
	}
	return os.Open(string(o))
}

// heard follows a directory until the test ends.
func heard(t *testing.T, dir string) <-chan records.Claim {
	t.Helper()
	f, err := New(opened(dir))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(func() {
		cancel()
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	claims := make(chan records.Claim, 1000)
	f.Follow(ctx, runtime.ContainerID{}, func(c records.Claim) { claims <- c })
	return claims
}

// await waits until a claim is heard.
func await(t *testing.T, claims <-chan records.Claim, want records.Claim) {
	t.Helper()
	late := time.After(30 * time.Second)
	var last records.Claim
	for {
		select {
		case last = <-claims:
			if last == want {
				return
			}
		case <-late:
			t.Fatalf("heard %+v last, want %+v", last, want)
		}
	}
}

func put(t *testing.T, dir, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestWhatAMemberWritesIsHeard(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put(t, dir, "note", "seqno 7\n") // before it is followed: as for an agent that was restarted
	claims := heard(t, dir)
	await(t, claims, records.Claim{Note: "seqno 7"})
	put(t, dir, "leader", "12\n")
	await(t, claims, records.Claim{Note: "seqno 7", Leads: true, Term: 12})
	put(t, dir, ".leader", "13")
	if err := os.Rename(filepath.Join(dir, ".leader"), filepath.Join(dir, "leader")); err != nil {
		t.Fatal(err)
	}
	await(t, claims, records.Claim{Note: "seqno 7", Leads: true, Term: 13})
	put(t, dir, "busy", "feeds db-2")
	await(t, claims, records.Claim{Note: "seqno 7", Leads: true, Term: 13, Busy: "feeds db-2"})
	for _, name := range []string{"leader", "note", "busy"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	await(t, claims, records.Claim{})
}

func TestWhatIsNoSmallFileIsNotRead(t *testing.T) {
	t.Parallel()
	secret := filepath.Join(t.TempDir(), "secret")
	put(t, filepath.Dir(secret), "secret", "1")
	for _, c := range []struct {
		name string
		make func(path string) error
	}{
		{"a link", func(p string) error { return os.Symlink(secret, p) }},
		{"a link out of it", func(p string) error { return os.Symlink("../secret", p) }},
		{"a directory", func(p string) error { return os.Mkdir(p, 0o700) }},
		{"a FIFO, which would be waited for", func(p string) error { return unix.Mkfifo(p, 0o600) }},
		{"a socket", func(p string) error { return unix.Mknod(p, unix.S_IFSOCK|0o600, 0) }},
		{"a large file", func(p string) error { return os.WriteFile(p, []byte(strings.Repeat("1", records.MaxNote+1)), 0o600) }},
		{"a file with a hole", func(p string) error { return os.WriteFile(p, nil, 0o600) }},
	} {
		dir := t.TempDir()
		for name := range bounds {
			path := filepath.Join(dir, name)
			if err := c.make(path); err != nil {
				t.Fatal(err)
			}
			if c.name == "a file with a hole" {
				if err := os.Truncate(path, 1<<40); err != nil {
					t.Fatal(err)
				}
			}
		}
		f, err := os.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		if got := read(f); got != (records.Claim{}) {
			t.Errorf("%s: got %+v, want nothing", c.name, got)
		}
		f.Close()
	}
}

func TestAMemberThatWritesWithoutEndIsHeardSeldomAndTheLastOfIt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	claims := heard(t, dir)
	await(t, claims, records.Claim{})
	began := time.Now()
	for n := 0; time.Since(began) < 1500*time.Millisecond; n++ {
		put(t, dir, ".x", "note")
		if err := os.Rename(filepath.Join(dir, ".x"), filepath.Join(dir, "note")); err != nil {
			t.Fatal(err)
		}
		put(t, dir, "note", strings.Repeat("x", n%1000))
	}
	put(t, dir, "note", "the last")
	most := int(time.Since(began)/leastNote) + 1
	if heard := len(claims); heard > most {
		t.Errorf("heard %d times, want at most %d", heard, most)
	}
	await(t, claims, records.Claim{Note: "the last"})
}

func TestAContainerWithoutTheDirectorySaysNothing(t *testing.T) {
	t.Parallel()
	f, err := New(opened(""))
	if err != nil {
		t.Fatal(err)
	}
	f.Follow(t.Context(), runtime.ContainerID{}, func(c records.Claim) { t.Errorf("heard %+v", c) })
	if err := f.Close(); err != nil { // it waits until that was followed
		t.Fatal(err)
	}
}

func TestReportsHaveTheirPace(t *testing.T) {
	at := time.Unix(1e9, 0)
	var p pace
	var last records.Claim
	step := func(after time.Duration, next records.Claim, want time.Duration) {
		t.Helper()
		at = at.Add(after)
		got := p.wait(at, last, next)
		if got != want {
			t.Fatalf("got %s, want %s", got, want)
		}
		if got == 0 {
			last = next
		}
	}
	step(0, records.Claim{Note: "1"}, 0)
	step(400*time.Millisecond, records.Claim{Note: "2"}, 600*time.Millisecond)
	step(600*time.Millisecond, records.Claim{Note: "2"}, 0)
	for term := range uint64(burst - 1) { // at once, for a while
		step(0, records.Claim{Leads: true, Term: term}, 0)
	}
	step(0, records.Claim{}, time.Second)
	step(500*time.Millisecond, records.Claim{}, 500*time.Millisecond)
	step(500*time.Millisecond, records.Claim{}, 0)
}
