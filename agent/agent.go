// Package agent is a node: it connects sessions with a server (agent/session), one worker
// for each identity (agent/worker), deadlines of guarded lives (agent/deadline) and orders
// about volumes (agent/reclaim), and has little of its own. Without a server everything
// continues as last ordered; an agent that ends, cleanly or not, leaves members running, and
// the next one on the same root adopts them.
//
//	h, err := home.Open(root, node)               // one agent a root
//	err = session.Join(ctx, h, dial, boot, facts) // learns the cluster's id, once
//	a, err := agent.New(agent.Config{Home: h, …})
//	err = a.Run(ctx)
package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stead-project/stead/agent/deadline"
	"github.com/stead-project/stead/agent/files"
	"github.com/stead-project/stead/agent/images"
	"github.com/stead-project/stead/agent/ledger"
	"github.com/stead-project/stead/agent/move"
	"github.com/stead-project/stead/agent/reclaim"
	"github.com/stead-project/stead/agent/session"
	"github.com/stead-project/stead/agent/watchdog"
	"github.com/stead-project/stead/agent/worker"
	"github.com/stead-project/stead/internal/backoff"
	"github.com/stead-project/stead/internal/trace"
	"github.com/stead-project/stead/internal/trouble"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// Agent is one node's agent.
type Agent struct {
	c         Config
	log       *slog.Logger
	workers   workers
	ledger    *ledger.Ledger
	deadlines *deadline.Keeper // nil: this node guards no lives
	reclaimer *reclaim.Reclaimer
	outbox    *session.Outbox
	known     *session.Known
	snapshots *session.SnapshotCache
	interests *session.Interests
	// conditions are what the node is short of.
	conditions *session.Conditions
	// prepared is what the node says of preparations, preparer what works on them; nil: not yet.
	prepared *session.PreparedImages
	preparer atomic.Pointer[images.Preparer]
	said     said
	// moved is what the node says of moves, mover what carries them out; nil: this node moves none.
	moved   *session.MoveReports
	mover   *move.Mover
	running chan struct{} // closed when there are workers
	files   files.Cache
	traces  traces
	client  atomic.Pointer[session.Client] // nil: not yet
	seq     atomic.Int64                   // of reports
}

// New checks the configuration and starts nothing.
func New(c Config) (*Agent, error) {
	c, err := c.filled()
	if err != nil {
		return nil, err
	}
	log := c.Logger.With("node", string(c.Home.Name()))
	outbox := session.NewOutbox(c.Tuning.Soon, c.Tuning.Later, time.Now)
	conditions := session.NewConditions(outbox.Notify)
	return &Agent{
		c: c, log: log, outbox: outbox, conditions: conditions, said: said{take: conditions.Set}, running: make(chan struct{}),
		prepared: session.NewPreparedImages(outbox.Notify), traces: traces{to: c.Trace, ready: map[spec.Identity]trace.Context{}},
		workers: workers{log: log, all: map[spec.Identity]*worker.Worker{}},
	}, nil
}

// Run takes up what is on this host and serves until ctx ends; it returns nil
// on such a requested stop, with every member left running. It fails at once when
// the ledger cannot be opened. It may be called once.
func (a *Agent) Run(ctx context.Context) (err error) {
	if err := os.MkdirAll(a.c.RunDir, 0o755); err != nil {
		return fmt.Errorf("make the run directory: %w", err)
	}
	a.ledger, err = ledger.Open(a.c.Home.LedgerPath(), a.c.Boot)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.ledger.Close()) }()
	// Reports grow over restarts of the agent: the count of starts is their upper half.
	a.seq.Store(a.ledger.Starts() << 32)
	a.readSaved()
	if err := a.keepDeadlines(ctx); err != nil {
		return err
	}
	defer a.deadlines.Close()
	a.reclaimer = reclaim.New(reclaim.Config{
		Volumes: a.c.Volumes, Open: func(id spec.Identity) spec.Token { return a.ledger.Look(id).Open }, Empty: a.c.Runtime.Empty,
		RetryFirst: a.c.Tuning.Worker.RetryFirst, RetryMost: a.c.Tuning.Worker.RetryMost,
		Now: time.Now, Reported: a.outbox.Notify, Logger: a.log,
	})
	preparer := images.NewPreparer(images.PreparerConfig{
		Ensure: a.c.Runtime.EnsureImage, Find: a.files.Find, Changed: a.prepared.Set,
		RetryFirst: a.c.Tuning.Worker.ImageFirst, RetryMost: a.c.Tuning.Worker.ImageMost, Log: a.log,
	})
	a.preparer.Store(preparer)
	a.workers.sourcesChanged = preparer.Retry
	a.beginMoves(ctx)
	client := a.newClient()
	a.client.Store(client)
	a.workers.sets = a.setFiles(client)

	follow, unfollow, err := a.followSelf()
	if err != nil {
		return err
	}
	defer unfollow()
	a.workers.self = follow

	var group sync.WaitGroup
	defer group.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	a.workers.adopt(ctx, a.workerConfig(), func(w *worker.Worker) { group.Go(func() { w.Run(ctx) }) }, a.ledger.Entries())
	close(a.running)
	group.Go(func() { a.workers.sets.Run(ctx) })
	group.Go(func() { a.snapshots.Run(ctx, keepTime) })
	group.Go(func() { a.known.Run(ctx) })
	group.Go(func() { a.repair(ctx) })
	group.Go(func() { preparer.Run(ctx) })
	group.Go(func() { a.reclaimer.Run(ctx) })
	group.Go(func() { a.deadlines.Run(ctx) })
	if a.mover != nil {
		group.Go(func() { a.mover.Run(ctx) })
	}
	answerer := &session.Answerer{Runtime: a.c.Runtime, Root: a.c.Home.Root(), ImagesChanged: a.imagesChanged, VolumeUses: a.c.VolumeUses, Logger: a.log}
	client.Run(ctx, session.Loop{
		Dial: a.c.Dial, Answer: answerer.Answer, Welcome: a.c.Tuning.Answer,
		RetryFirst: a.c.Tuning.RetryFirst, RetryMost: a.c.Tuning.RetryMost,
	})
	return nil
}

// SetConditions says what the host is short of now, in order. Before Run it goes with the first hello.
func (a *Agent) SetConditions(now []records.NodeCondition) { a.said.set(now) }

// filesFile holds the ConfigMaps and Secrets of the node's lives.
const filesFile = "book.json"

// readSaved reads what the agent before this one saved, so that DNS answers and members can be
// restarted in place while no server is there.
func (a *Agent) readSaved() {
	a.known = session.OpenKnown(session.Disk(a.c.Home.Root()), a.log)
	a.snapshots = session.OpenSnapshots(session.Tmpfs(a.c.RunDir), a.log)
	var saved []records.Files
	if err := session.Tmpfs(a.c.RunDir).Get(filesFile, &saved); err == nil {
		a.files.Put(true, saved)
	}
	a.interests = session.NewInterests(a.snapshots, a.c.Clock, a.outbox.Notify)
	a.c.Interests(a.interests)
	if all := a.snapshots.All(); len(all) > 0 { // none: what there is is not known
		a.c.Snapshots(all)
	}
	if t := a.snapshots.Tunnel(); t != nil {
		a.c.Tunnel(t)
	}
	if hosts := a.snapshots.Hosts(); hosts != nil {
		a.c.Hosts(hosts)
	}
}

func (a *Agent) saveFiles() {
	if err := session.Tmpfs(a.c.RunDir).Put(filesFile, a.files.All()); err != nil {
		a.log.Warn("ConfigMaps and Secrets not saved", "err", err)
	}
}

// keepDeadlines takes up the node's guarded lives, before anything is done for any life.
func (a *Agent) keepDeadlines(ctx context.Context) (err error) {
	if a.c.Watchdog == nil {
		return nil
	}
	dir := watchdog.Below(a.c.RunDir)
	a.deadlines, err = deadline.New(deadline.Config{
		Records: dir, Ledger: a.ledger, Clock: a.c.Clock, Cgroup: a.c.Cgroup,
		StartWatchdog: func() error { return a.c.Watchdog(string(dir)) },
		Foreign:       func() bool { return a.c.ForeignWatchdog != nil && a.c.ForeignWatchdog(string(dir)) }, Missed: a.workers.expired, Logger: a.log,
	})
	if err == nil {
		a.deadlines.AwaitWatchdog(ctx)
	}
	return err
}

func (a *Agent) newClient() *session.Client {
	return session.NewClient(session.Config{
		Home: a.c.Home, Boot: a.c.Boot, Facts: a.c.Facts, Workers: &a.workers, Ledger: a.ledger, Deadlines: a.deadlines,
		Reclaimer: a.reclaimer, Outbox: a.outbox, Known: a.known, Snapshots: a.snapshots, Interests: a.interests, Conditions: a.conditions,
		Prepared: a.prepared, Prepare: a.preparer.Load().Take,
		MoveReports: a.moved, TakeMoves: a.takeMoves(), InPlace: a.c.Volumes.InPlace,
		Files: &a.files, FilesChanged: a.saveFiles, SnapshotsChanged: a.traces.around(a.c.Snapshots), Listed: a.c.Listed, HostsChanged: a.c.Hosts, TunnelChanged: a.c.Tunnel, ServersTold: a.c.Servers, AuthorityTold: a.c.Authority,
		Clock: a.c.Clock, Now: time.Now, Logger: a.log,
	})
}

// setFiles shows members their sets.
func (a *Agent) setFiles(client *session.Client) *files.SetFiles {
	return files.NewSetFiles(files.SetFilesConfig{
		Snapshot: a.snapshots.Find, History: a.snapshots.History, Confirmed: client.ConfirmedUntil,
		RunDir: a.c.RunDir, Disk: files.SetsOnHost(a.c.RunDir), Renew: a.c.Tuning.Worker.Renew, Now: time.Now, Logger: a.log,
	})
}

// workerConfig is what all workers have in common.
func (a *Agent) workerConfig() *worker.Config {
	c := &worker.Config{
		Runtime: a.c.Runtime, Network: a.c.Network, Volumes: a.c.Volumes, Ledger: a.ledger,
		Starts: make(chan struct{}, max(4, 2*runtime.GOMAXPROCS(0))),
		Prober: a.c.Prober, Find: a.files.Find, Sets: a.workers.sets, Self: a.workers.self,
		Report: a.outbox.Put, Seq: func() int64 { return a.seq.Add(1) },
		Node: files.Node{Name: a.c.Home.Name(), HostIP: a.c.Facts.HostIP, Gateway: a.c.Gateway, Allocatable: a.c.Allocatable, Services: a.snapshots.Services},
		Boot: a.c.Boot, Epoch: func() int64 { return a.known.Now().At.Epoch },
		RunDir: a.c.RunDir, Files: worker.OnHost(a.c.Home.Root(), a.c.RunDir),
		Clock: a.c.Clock, Now: time.Now, Tuning: a.c.Tuning.Worker, Logger: a.log,
	}
	if a.deadlines != nil {
		c.Guard = a.deadlines
	}
	if a.c.Trace != nil {
		c.Trace = a.traces.done
	}
	return c
}

func (a *Agent) imagesChanged() {
	a.preparer.Load().Retry()
	a.workers.each(func(_ spec.Identity, w *worker.Worker) { w.ImagesChanged() })
}

// How often changed snapshots are written for the next agent, how often the network is repaired, and
// how long a change of it is left to come to an end before.
const (
	keepTime   = 250 * time.Millisecond
	repairTime = 10 * time.Second
	settleTime = 500 * time.Millisecond
)

// repair repairs the network until ctx ends: every repairTime, and soon after something of it
// changed.
func (a *Agent) repair(ctx context.Context) {
	var last trouble.Last
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(repairTime):
		case <-a.c.Changed:
			if !backoff.Sleep(ctx, settleTime) { // one repair for all that goes together
				return
			}
		}
		a.repairOnce(ctx, &last)
	}
}

// repairOnce repairs the host's part, which links need, and then the members'. Trouble is
// logged once.
func (a *Agent) repairOnce(ctx context.Context, last *trouble.Last) {
	if a.c.Repair != nil {
		sub, cancel := context.WithTimeout(ctx, repairTime)
		err := a.c.Repair(sub)
		cancel()
		if ctx.Err() == nil && last.IsErr(err) {
			a.log.Warn("repair of the host's network failed", "err", err)
		}
	}
	a.workers.each(func(_ spec.Identity, w *worker.Worker) { w.Repair() })
}
