package etcdembed_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stead-project/stead/records/stores"
	"github.com/stead-project/stead/server/access"
	"github.com/stead-project/stead/server/engine"
	"github.com/stead-project/stead/server/seal"
	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/store/etcdembed"
	"github.com/stead-project/stead/store/etcdstore"
)

// servers are members of one store, each with the port of a server.
type servers struct {
	t    *testing.T
	key  *seal.Key
	as   access.ServerIdentity
	dirs map[string]string
	at   map[string]string
	// quota of each member, in bytes; 0: the default.
	quota int64
}

// one is a running member.
type one struct {
	*etcdembed.Embedded
	store.Store
	stop func()
}

// Close implements store.Store.
func (o one) Close() error {
	o.stop()
	return nil
}

// newServers makes the first server's store, which is alone and listens nowhere, and the
// cluster's authority.
func newServers(t *testing.T) *servers {
	t.Helper()
	c := &servers{t: t, dirs: map[string]string{}, at: map[string]string{}}
	dir := c.dir("s1")
	e, s := begin(t, config(filepath.Join(dir, "etcd"), 0))
	if _, _, err := engine.Init(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	var err error
	if c.key, err = seal.Ensure(filepath.Join(dir, "secret.key")); err != nil {
		t.Fatal(err)
	}
	a, err := access.OpenAuthority(t.Context(), access.AuthorityConfig{Store: s, Key: c.key, Server: "s1", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	c.as = a.Identity("u")
	if err := errors.Join(s.Close(), e.Close()); err != nil {
		t.Fatal(err)
	}
	return c
}

// dir is the data directory of a server. Its path is short, for it holds a socket.
func (c *servers) dir(name string) string {
	if c.dirs[name] == "" {
		c.dirs[name] = shortDir(c.t)
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			c.t.Fatal(err)
		}
		c.at[name] = l.Addr().String()
		if err := l.Close(); err != nil {
			c.t.Fatal(err)
		}
	}
	return c.dirs[name]
}

// start starts a server's member, and with join has it join those members.
func (c *servers) start(name string, join ...stores.StoreMember) one {
	c.t.Helper()
	o, err := c.try(name, join...)
	if err != nil {
		c.t.Fatal(err)
	}
	return o
}

func (c *servers) try(name string, join ...stores.StoreMember) (one, error) {
	c.t.Helper()
	dir := c.dir(name)
	log := slog.New(slog.DiscardHandler)
	a, err := c.as.Open(access.AuthorityConfig{Key: c.key, Server: name, Peer: c.at[name], Logger: log})
	if err != nil {
		c.t.Fatal(err)
	}
	inner := filepath.Join(dir, "etcd")
	port, err := access.OpenPeerPort(c.t.Context(), a, c.at[name], etcdembed.PeerSocket(inner), dir, log)
	if err != nil {
		c.t.Fatal(err)
	}
	running, end := context.WithCancel(context.WithoutCancel(c.t.Context()))
	ended := make(chan struct{})
	go func() { defer close(ended); port.Run(running) }()
	ca, certificate := access.PeerFiles(dir)
	cfg := config(inner, c.quota)
	cfg.Name, cfg.Peers = name, &etcdembed.Peers{Address: c.at[name], CAFile: ca, CertFile: certificate, Join: join}
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	e, err := etcdembed.Start(ctx, cfg)
	if err != nil {
		end()
		<-ended
		return one{}, err
	}
	s, err := etcdstore.New(etcdstore.Config{Client: e.Client()})
	if err != nil {
		c.t.Fatal(err)
	}
	o := one{e, s, func() {
		_, _ = s.Close(), e.Close()
		end()
		<-ended
	}}
	c.t.Cleanup(o.stop)
	return o, nil
}

// join adds a server by another one, up to its vote.
func (c *servers) join(name string, by one) one {
	c.t.Helper()
	c.dir(name)
	members, err := by.AddLearner(c.t.Context(), c.at[name])
	if err != nil {
		c.t.Fatal(err)
	}
	o := c.start(name, members...)
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	if err := o.Promote(ctx); err != nil {
		c.t.Fatal(err)
	}
	return o
}

func TestOneMemberBecomesThreeAndOneAgain(t *testing.T) {
	c := newServers(t)
	first := c.start("s1")
	put(t, first, "k", "alone")
	if _, err := first.AddLearner(t.Context(), "127.0.0.1:1"); err != nil {
		t.Fatal(err)
	}
	if _, err := first.AddLearner(t.Context(), "127.0.0.1:2"); !errors.Is(err, etcdembed.ErrJoining) {
		t.Errorf("two join at once: %v", err)
	}
	for _, m := range members(t, first) {
		if m.Learner {
			if err := first.Remove(t.Context(), m.ID, ""); err != nil {
				t.Fatal(err)
			}
		}
	}
	second := c.join("s2", first)
	third := c.join("s3", second)
	if got := get(t, third, "k"); got != "alone" {
		t.Errorf("the third reads %q", got)
	}
	if all := members(t, third); len(all) != 3 || all[0].Peer != c.at["s1"] || all[2].Name != "s3" || all[2].Learner {
		t.Errorf("members are %+v", all)
	}
	// One of them is killed: the others take writes, and it catches up.
	leader, rest := first, []one{second, third}
	leader.stop()
	put(t, rest[0], "k", "without the first")
	first = c.start("s1")
	if got := get(t, first, "k"); got != "without the first" {
		t.Errorf("after its restart the first reads %q", got)
	}
	// Back to one: who leads gives that up first.
	for _, o := range []one{second, third} {
		for _, by := range []one{o, first} { // by itself when it leads
			if by.Self() == o.Self() && o.Leader() != o.Self() {
				continue
			}
			if err := by.Remove(t.Context(), o.Self(), first.Self()); err != nil {
				t.Fatal(err)
			}
			break
		}
		put(t, first, "k", "after "+o.Self())
		if !first.Removed(o.Self()) || first.Removed(first.Self()) {
			t.Errorf("of %s and %s the first does not say that the one was removed", o.Self(), first.Self())
		}
	}
	third.stop()
	if _, err := c.try("s3"); !errors.Is(err, stores.ErrRemoved) {
		t.Errorf("a member that was removed starts again: %v", err)
	}
	first.stop()
	alone := config(filepath.Join(c.dir("s1"), "etcd"), 0)
	e, s := begin(t, alone)
	if got := get(t, s, "k"); got != "after "+third.Self() {
		t.Errorf("alone again it reads %q", got)
	}
	_, _ = s.Close(), e.Close()
}

func TestAMemberWithPeersDoesNotStartWithoutThem(t *testing.T) {
	c := newServers(t)
	first := c.start("s1")
	second := c.join("s2", first)
	second.stop()
	first.stop()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := etcdembed.Start(ctx, config(filepath.Join(c.dir("s1"), "etcd"), 0)); !errors.Is(err, etcdembed.ErrAlone) {
		t.Errorf("got %v", err)
	}
}

func members(t *testing.T, o one) []stores.StoreMember {
	t.Helper()
	all, err := o.Members(t.Context())
	if err != nil {
		t.Fatal(fmt.Errorf("list members: %w", err))
	}
	return all
}

func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "stead")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
