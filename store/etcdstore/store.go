// Package etcdstore is the store on etcd, external or embedded. See DESIGN.md for
// what it promises beyond the contract, and how.
package etcdstore

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/stead-project/stead/store"
)

// DefaultPrefix is before every key of Stead in etcd, where Config names no other.
const DefaultPrefix = "/stead/v1/"

const (
	defaultTimeout = 5 * time.Second
	pageKeys       = 1000 // keys of one page of a snapshot
	rereads        = 3    // times a read starts again when its revision is compacted under it
)

// Config says which etcd to use, and where in it.
type Config struct {
	// Endpoints are the client URLs of an external etcd.
	Endpoints []string
	// TLS is used with https endpoints; nil: the system's roots, no certificate.
	TLS *tls.Config
	// Prefix is put before every key; default "/stead/v1/".
	Prefix string
	// DialTimeout bounds the first connection; default 5s.
	DialTimeout time.Duration
	// Timeout bounds every call within the caller's context; default 5s.
	Timeout time.Duration
	// Client, if given, is used instead of Endpoints, TLS and DialTimeout. It stays
	// the caller's: Close does not close it. It must not retry writes.
	Client *clientv3.Client
}

// Store is a store.Store on etcd.
type Store struct {
	client  *clientv3.Client
	own     bool
	prefix  string
	timeout time.Duration
	// endpoints and secure are those of a client of our own.
	endpoints []string
	secure    *tls.Config
	closing   context.Context // ends with Close; ends calls and watches
	close     context.CancelFunc
	calls     sync.RWMutex // read-locked by each call under way: Close waits for them
}

var _ store.Store = (*Store)(nil)

// New checks config and returns a store on it. It does not wait for a server: a
// call fails with store.ErrUnavailable while there is none.
func New(config Config) (*Store, error) {
	if (config.Client == nil) == (len(config.Endpoints) == 0) {
		return nil, errors.New("make etcd store: give either endpoints or a client")
	}
	s := &Store{client: config.Client, prefix: config.Prefix, timeout: config.Timeout}
	if s.prefix == "" {
		s.prefix = DefaultPrefix
	}
	if s.timeout <= 0 {
		s.timeout = defaultTimeout
	}
	if s.client == nil {
		client, err := dial(config)
		if err != nil {
			return nil, fmt.Errorf("make etcd store: %w", err)
		}
		s.client, s.own = client, true
		s.endpoints, s.secure = config.Endpoints, config.TLS
		if s.secure == nil {
			s.secure = &tls.Config{MinVersion: tls.VersionTLS12}
		}
	}
	s.closing, s.close = context.WithCancel(s.client.Ctx())
	return s, nil
}

func dial(config Config) (*clientv3.Client, error) {
	timeout := config.DialTimeout
	if timeout <= 0 {
		timeout = defaultTimeout
	}
	return clientv3.New(clientv3.Config{
		Endpoints:            config.Endpoints,
		TLS:                  config.TLS,
		DialTimeout:          timeout,
		DialKeepAliveTime:    10 * time.Second,
		DialKeepAliveTimeout: 5 * time.Second,
		MaxUnaryRetries:      1, // DESIGN.md: a retried Txn may find its own first try
		Logger:               zap.NewNop(),
	})
}

// call bounds ctx by the store's time-out and by Close. done is called once, when the call is over.
func (s *Store) call(ctx context.Context) (bound context.Context, done func()) {
	s.calls.RLock()
	bound, cancel := context.WithTimeout(ctx, s.timeout)
	stop := context.AfterFunc(s.closing, cancel)
	return bound, func() {
		stop()
		cancel()
		s.calls.RUnlock()
	}
}

// Snapshot implements store.Store.
func (s *Store) Snapshot(ctx context.Context, prefix string) (rev store.Rev, kvs []store.KV, err error) {
	err = reread(ctx, fmt.Sprintf("snapshot %q", prefix), func() (err error) {
		rev, kvs, err = s.snapshot(ctx, s.prefix+prefix)
		return err
	})
	return rev, kvs, err
}

// reread reads, and again while the revision is compacted under it. An etcd in this process may answer also when ctx has ended.
func reread(ctx context.Context, what string, read func() error) error {
	for range rereads {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("%s: %w: %w", what, store.ErrUnavailable, err)
		}
		err := read()
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, store.ErrCompacted):
			return fmt.Errorf("%s: %w", what, err)
		}
	}
	return fmt.Errorf("%s: %w: compacted under it %d times", what, store.ErrUnavailable, rereads)
}

func (s *Store) snapshot(ctx context.Context, prefix string) (store.Rev, []store.KV, error) {
	var kvs []store.KV
	var rev int64 // 0: the newest
	from, end := prefix, clientv3.GetPrefixRangeEnd(prefix)
	for {
		page, err := s.page(ctx, from, end, rev)
		if err != nil {
			return 0, nil, err
		}
		for _, kv := range page.Kvs {
			kvs = append(kvs, s.kv(kv))
		}
		if rev == 0 {
			rev = page.Header.Revision
		}
		if !page.More || len(page.Kvs) == 0 {
			return store.Rev(rev), kvs, nil
		}
		from = string(page.Kvs[len(page.Kvs)-1].Key) + "\x00"
	}
}

func (s *Store) page(ctx context.Context, from, end string, rev int64) (*clientv3.GetResponse, error) {
	ctx, done := s.call(ctx)
	defer done()
	page, err := s.client.Get(ctx, from, clientv3.WithRange(end), clientv3.WithLimit(pageKeys), clientv3.WithRev(rev))
	if err != nil {
		return nil, readError(err)
	}
	return page, answered(ctx, page.Header, true)
}

// Get implements store.Store.
func (s *Store) Get(ctx context.Context, keys ...string) (rev store.Rev, kvs map[string]store.KV, err error) {
	err = reread(ctx, "get", func() (err error) {
		rev, kvs, err = s.get(ctx, keys)
		return err
	})
	return rev, kvs, err
}

func (s *Store) get(ctx context.Context, keys []string) (store.Rev, map[string]store.KV, error) {
	found := make(map[string]store.KV, len(keys))
	var rev int64
	for first := true; first || len(keys) > 0; first = false {
		n := min(len(keys), store.MaxOps)
		resp, err := s.getSome(ctx, keys[:n], rev)
		if err != nil {
			return 0, nil, err
		}
		if rev == 0 {
			rev = resp.Header.Revision
		}
		for _, r := range resp.Responses {
			for _, kv := range r.GetResponseRange().Kvs {
				kv := s.kv(kv)
				found[kv.Key] = kv
			}
		}
		keys = keys[n:]
	}
	return store.Rev(rev), found, nil
}

func (s *Store) getSome(ctx context.Context, keys []string, rev int64) (*clientv3.TxnResponse, error) {
	ctx, done := s.call(ctx)
	defer done()
	// Without a read a transaction would not be linearizable: the prefix itself is no key.
	ops := []clientv3.Op{clientv3.OpGet(s.prefix, clientv3.WithCountOnly(), clientv3.WithRev(rev))}
	for _, key := range keys {
		ops = append(ops, clientv3.OpGet(s.prefix+key, clientv3.WithRev(rev)))
	}
	resp, err := s.client.Txn(ctx).Then(ops...).Commit()
	if err != nil {
		return nil, readError(err)
	}
	return resp, answered(ctx, resp.Header, true)
}

// Commit implements store.Store.
func (s *Store) Commit(ctx context.Context, t store.Txn) (store.Rev, error) {
	if err := t.Check(); err != nil {
		return 0, fmt.Errorf("commit: %w", err)
	}
	ctx, done := s.call(ctx)
	defer done()
	resp, err := s.client.Txn(ctx).If(s.compares(t.If)...).Then(s.ops(t.Then)...).Commit()
	if err != nil {
		return 0, fmt.Errorf("commit: %w", writeError(err))
	}
	// One without operations is answered by the member that was asked, from what it has.
	if err := answered(ctx, resp.Header, len(t.Then) > 0); err != nil {
		return 0, fmt.Errorf("commit: %w", err)
	}
	if !resp.Succeeded {
		return 0, fmt.Errorf("commit: %w", store.ErrConflict)
	}
	return store.Rev(resp.Header.Revision), nil
}

func (s *Store) compares(compares []store.Compare) []clientv3.Cmp {
	out := make([]clientv3.Cmp, 0, len(compares))
	for _, g := range compares {
		what := clientv3.ModRevision(s.prefix + g.Key)
		if g.Create {
			what = clientv3.CreateRevision(s.prefix + g.Key)
		}
		out = append(out, clientv3.Compare(what, "=", int64(g.Rev)))
	}
	return out
}

func (s *Store) ops(then []store.Op) []clientv3.Op {
	out := make([]clientv3.Op, 0, len(then))
	for _, op := range then {
		key := s.prefix + op.Key
		if op.Delete {
			out = append(out, clientv3.OpDelete(key))
		} else {
			out = append(out, clientv3.OpPut(key, string(op.Value), clientv3.WithLease(clientv3.LeaseID(op.Lease))))
		}
	}
	return out
}

// kv translates; the value is taken over, not copied.
func (s *Store) kv(kv *mvccpb.KeyValue) store.KV {
	return store.KV{
		Key:    strings.TrimPrefix(string(kv.Key), s.prefix),
		Value:  kv.Value,
		Create: store.Rev(kv.CreateRevision),
		Mod:    store.Rev(kv.ModRevision),
		Lease:  store.LeaseID(kv.Lease),
	}
}
