package deadline

import (
	"log/slog"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stead-project/stead/agent/ledger"
	"github.com/stead-project/stead/agent/runtime/fakert"
	"github.com/stead-project/stead/agent/watchdog"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
)

var db0 = spec.Identity{Namespace: "default", Set: "db", Ordinal: 0}

func tok(n int64) spec.Token { return spec.Token{Epoch: 1, Number: n} }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// spy is a ledger's disk, in memory, that looks at the files when a token is closed.
type spy struct {
	text      []byte
	t         *testing.T
	dir       watchdog.Dir
	broken    bool
	closed    int
	confirmed time.Duration // at that moment
	ended     bool
}

func (s *spy) WriteAt(b []byte, at int64) (int, error) {
	if s.broken {
		return 0, os.ErrPermission
	}
	if strings.Contains(string(b), `"op":"close"`) {
		s.closed++
		var err error
		s.confirmed, err = s.dir.Confirmed()
		must(s.t, err)
		found, err := s.dir.Records()
		must(s.t, err)
		s.ended = found["default.db-0"].Ended
	}
	s.text = append(s.text[:at], b...)
	return len(b), nil
}

func (s *spy) Name() string                   { return "spy" }
func (s *spy) Read() ([]byte, error)          { return s.text, nil }
func (s *spy) Truncate(size int64) error      { s.text = s.text[:size]; return nil }
func (s *spy) Sync() error                    { return nil }
func (s *spy) Replace(b []byte) (bool, error) { s.text = b; return true, nil }
func (s *spy) Close() error                   { return nil }

// A missed deadline is final: the token is closed in the ledger while the killers still
// count from the old moment, and while it cannot be closed that moment stands.
func TestWhatMissedItsDeadlineIsClosedBeforeTheMomentMoves(t *testing.T) {
	disk := &spy{t: t, dir: watchdog.Dir(t.TempDir())}
	book, err := ledger.OpenDisk(disk, "b1")
	must(t, err)
	now, over := 100*time.Second, 0
	k, err := New(Config{
		Records: disk.dir, Ledger: book, Clock: func() time.Duration { return now }, Cgroup: fakert.Cgroup,
		Missed: func(spec.Identity) { over++ }, Logger: slog.New(slog.DiscardHandler),
	})
	must(t, err)
	if err := k.Begin(db0, tok(5), 10*time.Second); err == nil {
		t.Error("a life began on a node that was never confirmed")
	}
	must(t, k.Confirm(95*time.Second))
	must(t, k.Begin(db0, tok(5), 10*time.Second))
	must(t, book.OpenToken(db0, tok(5)))
	now = 104 * time.Second
	must(t, k.Confirm(96*time.Second))
	if disk.closed != 0 {
		t.Fatal("closed before its deadline")
	}

	now, disk.broken = 106*time.Second, true
	if err := k.Confirm(105 * time.Second); err == nil {
		t.Error("confirmed although the ledger cannot be written")
	}
	if at, err := disk.dir.Confirmed(); err != nil || at != 96*time.Second || book.Look(db0).Open != tok(5) {
		t.Errorf("the moment is %v, %v; want the old one while the token is open", at, err)
	}
	disk.broken = false
	must(t, k.Confirm(105*time.Second))
	if disk.closed != 1 || disk.confirmed != 96*time.Second || disk.ended || over != 1 {
		t.Errorf("closed %d times, when the moment was %v and ended %v; told %d times", disk.closed, disk.confirmed, disk.ended, over)
	}
	if r := k.lives[db0]; !r.Ended || !k.Look(db0, tok(5), 0).Passed || !book.Look(db0).Spent(tok(5)) {
		t.Errorf("after that: %+v, %+v", r, book.Look(db0))
	}
	found, err := disk.dir.Records()
	must(t, err)
	if at, err := disk.dir.Confirmed(); err != nil || at != 105*time.Second || !found["default.db-0"].Ended {
		t.Errorf("the moment is %v, %v; record %+v", at, err, found)
	}
	if got := book.Look(db0).Ends; len(got) != 1 || got[0].Cause != causes.DeadlinePassed {
		t.Errorf("its end: %+v", got)
	}
	if err := k.Begin(db0, tok(5), 10*time.Second); err == nil {
		t.Error("it begins again")
	}
	must(t, k.Forget(db0, tok(5)))
	if got, err := disk.dir.Records(); err != nil || len(got) != 0 {
		t.Errorf("left of a life that is forgotten: %+v, %v", got, err)
	}
	must(t, k.Begin(db0, tok(6), 10*time.Second))
	if err := k.Begin(db0, tok(5), 10*time.Second); err == nil {
		t.Error("an older life takes the place of a newer one")
	}
}

// A deadline that passes while the moment is being moved was missed, too: killers may have
// begun. And an agent that comes late ends what was missed before anything else.
func TestWhatMissesItsDeadlineMeanwhileIsOverAsWell(t *testing.T) {
	for name, late := range map[string]func(k *Keeper, now *time.Duration){
		"while the moment moves": func(k *Keeper, now *time.Duration) {
			looks := 0
			k.c.Clock = func() time.Duration {
				looks++
				if looks > 1 {
					*now = 106 * time.Second
				}
				return *now
			}
			must(t, k.Confirm(103*time.Second))
		},
		"while there is no agent": func(k *Keeper, now *time.Duration) {
			*now = 106 * time.Second
			_, err := New(k.c)
			must(t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			disk := &spy{t: t, dir: watchdog.Dir(t.TempDir())}
			book, err := ledger.OpenDisk(disk, "b1")
			must(t, err)
			now := 100 * time.Second
			k, err := New(Config{
				Records: disk.dir, Ledger: book, Clock: func() time.Duration { return now }, Cgroup: fakert.Cgroup,
				Missed: func(spec.Identity) {}, Logger: slog.New(slog.DiscardHandler),
			})
			must(t, err)
			must(t, k.Confirm(95*time.Second))
			must(t, k.Begin(db0, tok(5), 10*time.Second))
			must(t, book.OpenToken(db0, tok(5)))
			late(k, &now)
			found, err := disk.dir.Records()
			must(t, err)
			if !found["default.db-0"].Ended || !book.Look(db0).Spent(tok(5)) {
				t.Errorf("record %+v, ledger %+v; want it over", found, book.Look(db0))
			}
		})
	}
}

// A run directory that outlived a boot says that the node was confirmed at a moment which
// the clock has not reached: nothing would move it, and no guarded life could begin.
func TestWhatAnEarlierBootConfirmedIsVoid(t *testing.T) {
	dir := watchdog.Dir(t.TempDir())
	must(t, dir.Make())
	must(t, dir.Confirm(90*time.Hour))
	book, err := ledger.OpenDisk(&spy{t: t, dir: dir}, "b2")
	must(t, err)
	k, err := New(Config{
		Records: dir, Ledger: book, Clock: func() time.Duration { return time.Minute }, Cgroup: fakert.Cgroup,
		Missed: func(spec.Identity) {}, Logger: slog.New(slog.DiscardHandler),
	})
	must(t, err)
	if at, err := dir.Confirmed(); at != 0 || err != nil {
		t.Errorf("confirmed at %s, %v; want nothing", at, err)
	}
	must(t, k.Confirm(50*time.Second))
	if at, _ := dir.Confirmed(); at != 50*time.Second {
		t.Errorf("the next confirmation: %s, want 50s", at)
	}
}

func TestAWatchdogOfAnotherReleaseIsReplacedWhenTheAgentStarts(t *testing.T) {
	for name, c := range map[string]struct {
		foreign bool // before the start of another
		stays   bool
		starts  int
		says    string
	}{
		"of this release":               {false, false, 1, "watchdog started"}, // none runs
		"of another":                    {true, false, 2, "watchdog of another release replaced"},
		"of another that is not ending": {true, true, 2, "left as it is"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				starts := 0
				var said strings.Builder
				k, err := New(Config{
					Records: watchdog.Dir(t.TempDir()), Clock: func() time.Duration { return time.Hour }, Missed: func(spec.Identity) {},
					StartWatchdog: func() error { starts++; return nil },
					Foreign:       func() bool { return c.foreign && (c.stays || starts < 2) },
					Logger:        slog.New(slog.NewTextHandler(&said, nil)),
				})
				must(t, err)
				k.AwaitWatchdog(t.Context())
				if starts != c.starts || !strings.Contains(said.String(), c.says) {
					t.Errorf("started %d times, want %d; it says %s", starts, c.starts, said.String())
				}
			})
		})
	}
}
