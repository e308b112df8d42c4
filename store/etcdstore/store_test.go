package etcdstore_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/store/etcdembed"
	"github.com/stead-project/stead/store/etcdstore"
	"github.com/stead-project/stead/store/storetest"
)

func embedded(t *testing.T, socket string) *etcdembed.Embedded {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	e, err := etcdembed.Start(ctx, etcdembed.Config{Dir: t.TempDir(), Socket: socket, NoFsync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// opener makes stores of a prefix each from config.
func opener(config etcdstore.Config) func(*testing.T) store.Store {
	var n atomic.Int32
	return func(t *testing.T) store.Store {
		c := config
		c.Prefix = fmt.Sprintf("/test/%d/", n.Add(1))
		s, err := etcdstore.New(c)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
}

func TestConformanceInProcess(t *testing.T) {
	storetest.Run(t, opener(etcdstore.Config{Client: embedded(t, "").Client(), Timeout: time.Minute}))
}

func socket(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "stead") // socket paths are short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "s")
}

func TestConformanceOverAConnection(t *testing.T) {
	path := socket(t)
	embedded(t, path)
	storetest.Run(t, opener(etcdstore.Config{Endpoints: []string{"unix://" + path}, Timeout: time.Minute}))
}

func TestWithoutAServer(t *testing.T) {
	s, err := etcdstore.New(etcdstore.Config{
		Endpoints: []string{"unix://" + socket(t)}, Timeout: 200 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	unavailable(t, s)
}

func TestWithASilentServer(t *testing.T) {
	path := socket(t)
	l, err := net.Listen("unix", path) // takes connections, never answers
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s, err := etcdstore.New(etcdstore.Config{Endpoints: []string{"unix://" + path}, Timeout: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	unavailable(t, s)
}

func TestStatusDoesNotWaitForAServerThatHangs(t *testing.T) {
	hung, fine := socket(t), socket(t)
	l, err := net.Listen("unix", hung)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	embedded(t, fine)
	s, err := etcdstore.New(etcdstore.Config{Endpoints: []string{"unix://" + hung, "unix://" + fine}, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if got, err := s.Status(t.Context()); err != nil || got.Version == "" {
		t.Errorf("got %+v, %v", got, err)
	}
}

// unavailable checks what every method says, in time, when there is no answer.
func unavailable(t *testing.T, s *etcdstore.Store) {
	t.Helper()
	ctx := t.Context()
	for name, c := range map[string]struct {
		call func() error
		want error
	}{
		"Snapshot": {func() error { _, _, err := s.Snapshot(ctx, ""); return err }, store.ErrUnavailable},
		"Get":      {func() error { _, _, err := s.Get(ctx, "k"); return err }, store.ErrUnavailable},
		"Watch":    {func() error { _, err := s.Watch(ctx, "", 1); return err }, store.ErrUnavailable},
		"Grant":    {func() error { _, err := s.Grant(ctx, time.Second); return err }, store.ErrUnavailable},
		"Renew":    {func() error { return s.Renew(ctx, 1) }, store.ErrUnavailable},
		"Revoke":   {func() error { return s.Revoke(ctx, 1) }, store.ErrUnavailable},
		"Status":   {func() error { _, err := s.Status(ctx); return err }, store.ErrUnavailable},
		"Commit": {func() error {
			_, err := s.Commit(ctx, store.Txn{Then: []store.Op{store.Put("k", nil)}})
			return err
		}, store.ErrUnknown},
	} {
		begun := time.Now()
		if err := c.call(); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
		if took := time.Since(begun); took > time.Minute {
			t.Errorf("%s took %v with a time-out of 200ms", name, took)
		}
	}
}

func TestNewRefusesNoServerAndTwo(t *testing.T) {
	if _, err := etcdstore.New(etcdstore.Config{}); err == nil {
		t.Error("no server: it was accepted")
	}
	if _, err := etcdstore.New(etcdstore.Config{Endpoints: []string{"http://127.0.0.1:1"}, Client: embedded(t, "").Client()}); err == nil {
		t.Error("two servers: it was accepted")
	}
}

func TestPrefixesDoNotMeet(t *testing.T) {
	e := embedded(t, "")
	open := func(prefix string) store.Store {
		s, err := etcdstore.New(etcdstore.Config{Client: e.Client(), Prefix: prefix})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	one, two := open(""), open("/stead/v2/")
	for _, s := range []store.Store{one, two} {
		if _, err := s.Commit(t.Context(), store.Txn{
			If: []store.Compare{store.Absent("k")}, Then: []store.Op{store.Put("k", nil)},
		}); err != nil {
			t.Fatal(err)
		}
		if _, kvs, err := s.Snapshot(t.Context(), ""); err != nil || len(kvs) != 1 || kvs[0].Key != "k" {
			t.Errorf("got %v, error %v", kvs, err)
		}
	}
	got, err := e.Client().Get(t.Context(), "/stead/v1/k")
	if err != nil || got.Count != 1 {
		t.Errorf("the key does not stand at /stead/v1/k: %v, error %v", got, err)
	}
}
