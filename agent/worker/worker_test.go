package worker

import (
	"context"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stead-project/stead/agent/files"
	"github.com/stead-project/stead/agent/ledger"
	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/agent/runtime/fakert"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
)

var (
	db0 = spec.Identity{Namespace: "default", Set: "db", Ordinal: 0}
	cid = runtime.ContainerID{ID: db0, Name: "db"}
)

func tok(n int64) spec.Token { return spec.Token{Epoch: 1, Number: n} }

// node is a host whose agent can be restarted: the host and the directories stay.
type node struct {
	t        *testing.T
	host     *fakert.Host
	dir      string
	boot     spec.BootID
	book     files.Cache
	prober   Prober
	guard    Guard
	start    time.Time
	tuning   Tuning
	starts   chan struct{} // places for starts
	epoch    atomic.Int64  // the newest that the node has heard of
	change   func(*Config) // what else is different
	pictures func(*files.SetFilesConfig)
	found    Found // what the agent saw before it began
	looks    int   // since looksAt
	looksAt  time.Time

	mu      sync.Mutex
	picture bool
	reports []records.Report

	ledger *ledger.Ledger
	sets   *files.SetFiles
	w      *Worker
	cancel context.CancelFunc
	done   chan struct{}
}

func newNode(t *testing.T) *node {
	n := &node{t: t, host: fakert.New(), dir: t.TempDir(), boot: "b1", picture: true, start: time.Now(), starts: make(chan struct{}, 1)}
	must(t, ledger.Create(filepath.Join(n.dir, "ledger")))
	t.Cleanup(func() { n.kill() })
	return n
}

// run starts an agent's worker on what is there.
func (n *node) run() {
	n.t.Helper()
	l, err := ledger.Open(filepath.Join(n.dir, "ledger"), n.boot)
	must(n.t, err)
	starts, seq := l.Starts(), int64(0)
	runDir := filepath.Join(n.dir, "run-"+string(n.boot))
	c := &Config{
		Runtime: n.host, Network: n.host, Volumes: n.host, Ledger: l, Prober: n.prober, Guard: n.guard, Find: n.book.Find, Starts: n.starts,
		Report: func(r records.Report) {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.reports = append(n.reports, r)
		},
		Seq:  func() int64 { n.mu.Lock(); defer n.mu.Unlock(); seq++; return starts<<32 + seq },
		Node: files.Node{Name: "n1", Gateway: "169.254.1.1"}, Boot: n.boot,
		RunDir: runDir, Files: OnHost(n.dir, runDir), Now: time.Now,
		Epoch:  func() int64 { n.looked(); return n.epoch.Load() },
		Clock:  func() time.Duration { return time.Since(n.start) },
		Tuning: n.tuning.Filled(), Logger: slog.New(slog.DiscardHandler),
	}
	if n.change != nil {
		n.change(c)
	}
	n.ledger = l
	if c.Sets == nil {
		n.sets = n.newSets(runDir, c.Logger)
		c.Sets = n.sets
	}
	n.w = New(c, db0, n.found)
	ctx, cancel := context.WithCancel(n.t.Context())
	n.cancel, n.done = cancel, make(chan struct{})
	sets := n.sets
	go func() {
		defer close(n.done)
		var group sync.WaitGroup
		group.Go(func() { sets.Run(ctx) })
		n.w.Run(ctx)
		group.Wait()
	}()
}

func (n *node) newSets(runDir string, log *slog.Logger) *files.SetFiles {
	c := files.SetFilesConfig{
		History:   func(spec.SetRef) []records.Change { return nil },
		Confirmed: func() time.Duration { return 0 },
		Snapshot: func(ref spec.SetRef) (records.Snapshot, bool) {
			n.mu.Lock()
			defer n.mu.Unlock()
			return records.Snapshot{Ref: ref, Sequence: spec.Sequence{Epoch: 1, Rev: 1}, Replicas: 1}, n.picture
		},
		RunDir: runDir, Disk: files.SetsOnHost(runDir), Renew: n.tuning.Filled().Renew, Now: time.Now, Logger: log,
	}
	if n.pictures != nil {
		n.pictures(&c)
	}
	return files.NewSetFiles(c)
}

// anySet is every set.
func anySet(spec.SetRef) bool { return true }

// FilesChanged says that any ConfigMap or Secret changed.
func (w *mailbox) FilesChanged() { w.SourcesChanged(func(files.FileSource) bool { return true }) }

// looked is called whenever the worker looks at its life; one that does so again and again
// would take a processor, and a test its time.
func (n *node) looked() {
	n.looks++
	if time.Since(n.looksAt) > 10*time.Second {
		n.looks, n.looksAt = 0, time.Now()
	}
	if n.looks > 1000 {
		panic("the worker does not rest")
	}
}

// kill ends the agent, and nothing else.
func (n *node) kill() {
	if n.cancel == nil {
		return
	}
	n.cancel()
	<-n.done
	_ = n.ledger.Close()
	n.cancel = nil
}

func (n *node) last() records.Report {
	n.t.Helper()
	synctest.Wait()
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.reports) == 0 {
		return records.Report{}
	}
	return n.reports[len(n.reports)-1]
}

// all are the reports so far.
func (n *node) all() []records.Report {
	synctest.Wait()
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.reports)
}

func (n *node) wantLast(what string, ok func(records.Report) bool) records.Report {
	n.t.Helper()
	r := n.last()
	if !ok(r) {
		n.t.Fatalf("want %s; the last report is %+v", what, r)
	}
	return r
}

func (n *node) wantReady() records.Report {
	n.t.Helper()
	return n.wantLast("ready", func(r records.Report) bool { return r.Ready && r.Phase == records.PhaseRunning })
}

// wantCause wants the last report to name this trouble.
func (n *node) wantCause(cause causes.Cause, message string) records.Report {
	n.t.Helper()
	return n.wantLast(string(cause)+": "+message, func(r records.Report) bool { return r.Cause == cause && strings.Contains(r.Message, message) })
}

func (n *node) wantStopped(token spec.Token) {
	n.t.Helper()
	n.wantLast("stopped", func(r records.Report) bool { return r.Phase == records.PhaseStopped && r.Token == token })
}

func (n *node) wantStarts(token spec.Token, want int) {
	n.t.Helper()
	synctest.Wait()
	if got := n.host.StartsOf(cid, token); got != want {
		n.t.Fatalf("token %s was started %d times, want %d: %+v", token, got, want, n.host.Starts(db0))
	}
}

func life(number int64, goal records.Goal) records.Life {
	l := records.Life{
		Member: records.Member{
			ID: db0, Token: tok(number), Goal: goal, Reason: records.ReasonCreate, Revision: "r1",
			Node: "n1", Boot: "b1", Address: netip.MustParseAddr("10.88.0.2"), GraceSeconds: 30,
			Volumes: []records.MemberVolume{{Claim: "data", ID: "v1", Number: 1}},
		},
		Template: spec.Template{Spec: spec.MemberSpec{Containers: []spec.Container{{
			Name: "db", Image: "img:1", VolumeMounts: []spec.VolumeMount{{Name: "data", MountPath: "/data"}},
		}}}},
		Service: "db", Domain: "cluster.local",
		FreshVolumes: map[spec.ClaimName]string{"data": records.VolumeFirst},
	}
	if goal == records.GoalStop {
		l.Member.StopReason = records.ReasonScaleDown
	}
	return l
}

func with(l records.Life, changes ...func(*records.Life)) records.Life {
	for _, change := range changes {
		change(&l)
	}
	return l
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (n *node) steadFile(name string) string {
	b, err := os.ReadFile(filepath.Join(files.At(filepath.Join(n.dir, "run-"+string(n.boot)), db0).Stead, name))
	if err != nil {
		return ""
	}
	return string(b)
}

func TestALifeIsStartedAndReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		n.run()
		n.w.Tell(life(5, records.GoalRun))
		r := n.wantReady()
		if r.Token != tok(5) || r.Cause != "" || len(r.Containers) != 1 || r.Containers[0].State != "Running" {
			t.Fatalf("got %+v", r)
		}
		n.wantStarts(tok(5), 1)
		made, _ := n.host.Container(cid)
		if made.Token != tok(5) || made.Image != "img:1" || len(made.Mounts) != 6 {
			t.Fatalf("container: got %+v", made)
		}
		if a, ok := n.host.Address(db0); !ok || a != netip.MustParseAddr("10.88.0.2") {
			t.Fatalf("address: got %v %v", a, ok)
		}
		if n.steadFile(files.MemberFile) == "" || n.steadFile(files.SetFile) == "" {
			t.Fatal("member.json or set.json is missing")
		}
	})
}

// A container finds volume-new however late its program looks, for the member may be
// ready by then; one that starts after the member was ready once does not.
func TestVolumeNewStaysForTheContainersThatStartedWithIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		var seen []string
		n.host.OnCall(func(_ context.Context, c fakert.Call) error {
			if c.Op == "Start" {
				seen = append(seen, n.steadFile(files.VolumeNewFile))
			}
			return nil
		})
		n.run()
		n.w.Tell(life(5, records.GoalRun))
		n.wantReady()
		n.w.Tell(with(life(5, records.GoalRun), func(l *records.Life) { l.FreshVolumes = nil })) // the server knows it, too
		n.w.FilesChanged()
		time.Sleep(time.Minute) // until it was written again
		if got := n.steadFile(files.VolumeNewFile); got != "data first\n" {
			t.Errorf("once ready: %q", got)
		}
		n.host.Exit(cid, runtime.Exit{Code: 1})
		time.Sleep(time.Minute) // more than the first back-off, on the bubble's clock
		n.wantStarts(tok(5), 2)
		if want := []string{"data first\n", ""}; !slices.Equal(seen, want) {
			t.Errorf("the containers found %q, want %q", seen, want)
		}
	})
}

func TestAStopIsGentleThenFinal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		n.host.OnStart(func(runtime.Container) fakert.Behaviour { return fakert.Behaviour{IgnoreTerm: true} })
		reason := ""
		n.host.OnCall(func(_ context.Context, c fakert.Call) error {
			if c.Op == "Signal" {
				reason = n.steadFile(files.TerminationFile)
			}
			return nil
		})
		n.run()
		n.w.Tell(life(5, records.GoalRun))
		n.wantReady()
		n.w.Tell(life(5, records.GoalStop))
		time.Sleep(29 * time.Second)
		n.wantLast("stopping", func(r records.Report) bool { return r.Phase == records.PhaseStopping && !r.Ready })
		if reason != "ScaleDown\n" {
			t.Fatalf("termination-reason at the signal: got %q", reason)
		}
		n.w.Tell(life(5, records.GoalRun)) // a stale list: Stop is final
		time.Sleep(2 * time.Second)
		n.wantStopped(tok(5))
		if got := n.host.RunningTokens(db0); len(got) != 0 {
			t.Fatalf("still running: %v", got)
		}
		if _, ok := n.host.Address(db0); ok {
			t.Fatal("the link is still there")
		}
		n.wantStarts(tok(5), 1)
	})
}

func TestStoppedIsNeverToldOfAProcessThatDoesNotDie(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		n.host.OnStart(func(runtime.Container) fakert.Behaviour {
			return fakert.Behaviour{IgnoreTerm: true, Unkillable: true}
		})
		n.run()
		n.w.Tell(life(5, records.GoalRun))
		n.wantReady()
		n.w.Tell(life(5, records.GoalStop))
		time.Sleep(10 * time.Minute)
		n.wantLast("a cause", func(r records.Report) bool { return r.Phase == records.PhaseStopping && r.Cause == causes.StopError })
		n.host.Exit(cid, runtime.Exit{Code: 137})
		time.Sleep(2 * time.Minute)
		n.wantStopped(tok(5))
	})
}

func TestCrashesBackOffInPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		n.run()
		n.w.Tell(life(5, records.GoalRun))
		n.wantReady()
		begin := time.Now()
		want := []time.Duration{0, 10 * time.Second, 20 * time.Second, 40 * time.Second}
		for i, wait := range want {
			n.host.Exit(cid, runtime.Exit{Code: 1})
			if wait > 0 {
				n.wantLast("a crash loop", func(r records.Report) bool {
					return !r.Ready && r.Cause == "CrashLoop" && r.Phase == records.PhaseRunning
				})
				time.Sleep(wait - time.Second)
				n.wantStarts(tok(5), i+1)
				time.Sleep(2 * time.Second)
			}
			n.wantStarts(tok(5), i+2)
			if r := n.wantReady(); r.Containers[0].Restarts != i+1 || *r.Containers[0].ExitCode != 1 {
				t.Fatalf("restart %d: got %+v", i+1, r.Containers[0])
			}
		}
		if boxes, _ := n.host.Sandboxes(t.Context()); len(boxes) != 1 || boxes[0].Token != tok(5) {
			t.Fatalf("sandboxes after %s: %+v", time.Since(begin), boxes)
		}
		time.Sleep(11 * time.Minute) // a long run is forgiven
		n.host.Exit(cid, runtime.Exit{Code: 1})
		time.Sleep(time.Minute) // more than the first back-off, on the bubble's clock
		n.wantStarts(tok(5), len(want)+2)
	})
}
