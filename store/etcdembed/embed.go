// Package etcdembed runs one etcd member inside this process. It listens on no
// network address: the store reaches it by direct calls, and members of other servers,
// where there are any, by a unix socket to which their server leads them (peers.go). What it acknowledges is
// on disk (fsync), so the process may be killed at any moment.
//
// The data file keeps its largest size, a small multiple of the live data:
// compaction frees pages for reuse, only a defragmentation gives them back. When
// the quota is reached, writes are refused; then all history is forgotten, the file
// defragmented, by one member after the other, and writes taken again, by itself (space.go).
package etcdembed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
)

// ErrLocked: another process (or another Start in this one) uses the directory.
var ErrLocked = errors.New("data directory is in use")

// Config of an embedded etcd.
type Config struct {
	// Dir holds everything; made with mode 0700 if missing. One process at a time.
	Dir string
	// Name of the member; default "stead".
	Name string
	// Logger gets etcd's warnings and errors; nil: dropped.
	Logger *slog.Logger
	// QuotaBytes bounds the data file; above it writes fail with store.ErrNoSpace,
	// until space could be freed.
	// Default 2 GiB.
	QuotaBytes int64
	// KeepRevisions is how much history watches may need; older revisions are
	// compacted every 5 minutes. Default 10000.
	KeepRevisions int64
	// Socket, if set, is the path of a unix socket (at most 107 bytes; a stale one is
	// replaced) on which clients such as etcdctl are served; its directory must be
	// closed to others. Empty: none.
	Socket string
	// LookAfter is how often it is looked whether writes are refused for want of
	// space; default 5s.
	LookAfter time.Duration
	// Peers, if given, has members of other servers reach this one; nil: it is alone.
	Peers *Peers
	// NoFsync risks the data at a power failure. For tests and benchmarks only.
	NoFsync bool
}

func (c Config) withDefaults() (Config, error) {
	if c.Dir == "" {
		return c, errors.New("no data directory was given")
	}
	if c.Name == "" {
		c.Name = "stead"
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.QuotaBytes <= 0 {
		c.QuotaBytes = 2 << 30
	}
	if c.KeepRevisions <= 0 {
		c.KeepRevisions = 10_000
	}
	if c.LookAfter <= 0 {
		c.LookAfter = 5 * time.Second
	}
	return c, nil
}

// dataDir is etcd's own directory in Config.Dir.
const dataDir = "data"

// closeLimit bounds how long Close waits for etcd.
const closeLimit = 10 * time.Second

// Embedded is a running etcd member.
type Embedded struct {
	config Config
	etcd   *embed.Etcd
	client *clientv3.Client
	logs   *logs
	end    context.CancelFunc // of group
	group  sync.WaitGroup
	lock   *os.File
	// unpacked names the backup from which the store was made; "": none, or that is known.
	unpacked string
	ended    chan struct{} // closed when etcd has ended by itself, or by Close
	once     sync.Once
	err      error
}

// Start starts etcd and returns when it serves reads and writes, or ctx ends. A
// directory that another process uses is ErrLocked.
func Start(ctx context.Context, config Config) (*Embedded, error) {
	config, err := config.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("start embedded etcd: %w", err)
	}
	lock, err := lockDir(config.Dir)
	if err != nil {
		return nil, fmt.Errorf("start embedded etcd: %w", err)
	}
	from, err := unpacked(config.Dir)
	if err != nil {
		_ = lock.Close()
		return nil, fmt.Errorf("start embedded etcd: %w", err)
	}
	logs := newLogs(config.Logger)
	etcd, err := embed.StartEtcd(config.etcd(logs))
	if err != nil {
		_ = lock.Close()
		return nil, fmt.Errorf("start embedded etcd in %s: %w", config.Dir, err)
	}
	e := &Embedded{config: config, etcd: etcd, client: v3client.New(etcd.Server), logs: logs, lock: lock, unpacked: from, ended: make(chan struct{})}
	go e.notice()
	var keeping context.Context
	keeping, e.end = context.WithCancel(context.WithoutCancel(ctx)) // until Close
	if err := e.belongs(); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	waits := time.AfterFunc(tellAfter, func() {
		config.Logger.Warn("store waited for", "err", "a majority of its servers must run: "+named(e.Known())+
			"; if the data of most is lost for good, 'stead server recover --help' says what to do")
	})
	defer waits.Stop()
	select {
	case <-etcd.Server.ReadyNotify():
		logs.speakUp()
		e.group.Go(func() { e.keepSpace(keeping) })
		if err := e.settle(ctx); err != nil {
			if logs.back.given() {
				err = e.Why()
			}
			return nil, fmt.Errorf("start embedded etcd in %s: %w", config.Dir, errors.Join(err, e.Close()))
		}
		return e, nil
	case err = <-etcd.Err():
	case <-e.ended:
		err = e.Why()
	case <-ctx.Done():
		err = ctx.Err()
	}
	return nil, fmt.Errorf("start embedded etcd in %s: %w", config.Dir, errors.Join(err, e.Close()))
}

// tellAfter is how long a start waits for other members before it says so.
const tellAfter = 10 * time.Second

// The raft clock. Alone, a member elects itself after at most election plus one
// election of chance; with etcd's defaults (100 ms, 1 s) that is what a start waits
// for. There is no peer whose slowness a longer time would have to forgive.
const (
	tick     = 20 * time.Millisecond
	election = 5 * tick // the least etcd allows
)

// identity is the peer URL: a name in the member list, never dialled nor listened on.
var identity = url.URL{Scheme: "unix", Host: "embedded"}

func (c Config) etcd(logs *logs) *embed.Config {
	cfg := embed.NewConfig()
	cfg.Dir = filepath.Join(c.Dir, dataDir)
	cfg.Name = c.Name
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = nil, []url.URL{identity}
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = nil, nil
	if c.Socket != "" {
		socket := []url.URL{{Scheme: "unix", Path: c.Socket}}
		cfg.ListenClientUrls, cfg.AdvertiseClientUrls = socket, socket
	}
	cfg.EnableGRPCGateway = false
	cfg.InitialCluster = c.Name + "=" + identity.String()
	cfg.TickMs, cfg.ElectionMs = uint(tick.Milliseconds()), uint(election.Milliseconds())
	cfg.QuotaBackendBytes = c.QuotaBytes
	cfg.AutoCompactionMode = embed.CompactorModeRevision
	cfg.AutoCompactionRetention = strconv.FormatInt(c.KeepRevisions, 10)
	// A start replays the log from the last snapshot, and the entries since are kept
	// in memory; no peer ever has to catch up.
	cfg.SnapshotCount, cfg.SnapshotCatchUpEntries = 2000, 100
	if c.Peers != nil {
		c.Peers.with(c, cfg)
	}
	cfg.UnsafeNoFsync = c.NoFsync
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(logs.zap())
	return cfg
}

// Client calls the member directly, without a connection. It lives until Close.
func (e *Embedded) Client() *clientv3.Client { return e.client }

// Err delivers an error if etcd fails on its own while it runs.
func (e *Embedded) Err() <-chan error { return e.etcd.Err() }

// Ended is closed when etcd has ended by itself, and Why then says why: stores.ErrRemoved, mostly.
func (e *Embedded) Ended() <-chan struct{} { return e.ended }

// notice closes ended; it ends with etcd.
func (e *Embedded) notice() {
	defer close(e.ended)
	select {
	case <-e.etcd.Server.StopNotify():
	case <-e.logs.back.c:
	}
}

// Why is why etcd has ended by itself.
func (e *Embedded) Why() error {
	if e.logs.back.given() {
		return fmt.Errorf("%w: run 'stead server replace %s' on another server, move the data directory away, and join with the token that is printed", ErrSetBack, e.config.Name)
	}
	if err := e.belongs(); err != nil {
		return err
	}
	return errors.New("it stopped by itself")
}

// Close closes the client, so that its calls and watches end, then stops etcd and
// frees the directory. It waits at most 10 seconds; after an error the directory
// stays locked until the process ends. Repeated calls return the first outcome.
func (e *Embedded) Close() error {
	e.once.Do(func() {
		e.logs.ends.Store(true)
		e.end()
		_ = e.client.Close() // its only error is that its context ended
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			e.group.Wait()
			e.etcd.Close()
		}()
		select {
		case <-stopped:
			e.err = e.lock.Close()
		case <-e.logs.back.c: // it stands still, and what it has must not be used again
		case <-time.After(closeLimit):
			e.err = fmt.Errorf("close embedded etcd: not stopped within %v", closeLimit)
		}
	})
	return e.err
}

// lockDir makes dir and takes its lock, which the kernel frees when the process
// ends in whatever way. etcd has a lock of its own, but waits for it without a word.
func lockDir(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, "lock")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return f, nil
	}
	_ = f.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, fmt.Errorf("%w: %s is locked; is another stead server running with this directory?", ErrLocked, path)
	}
	return nil, fmt.Errorf("lock %s: %w", path, err)
}
