package etcdembed_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/store/etcdembed"
	"github.com/stead-project/stead/store/etcdstore"
)

func begin(t *testing.T, config etcdembed.Config) (*etcdembed.Embedded, store.Store) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	e, err := etcdembed.Start(ctx, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	s, err := etcdstore.New(etcdstore.Config{Client: e.Client()})
	if err != nil {
		t.Fatal(err)
	}
	return e, s
}

// put writes, again after a write that a starved disk left without an answer.
func put(t *testing.T, s store.Store, key, value string) store.Rev {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		rev, err := s.Commit(ctx, store.Txn{Then: []store.Op{store.Put(key, []byte(value))}})
		if err == nil {
			return rev
		}
		if !errors.Is(err, store.ErrUnknown) || ctx.Err() != nil {
			t.Fatal(err)
		}
	}
}

func get(t *testing.T, s store.Store, key string) string {
	t.Helper()
	_, kvs, err := s.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return string(kvs[key].Value)
}

func TestItStartsAndEndsQuietlyAndKeepsWhatItAcknowledged(t *testing.T) {
	var out bytes.Buffer
	dir := t.TempDir()
	config := etcdembed.Config{Dir: dir, Socket: filepath.Join(dir, "socket"), Logger: slog.New(slog.NewTextHandler(&out, nil))}
	begun := time.Now()
	e, s := begin(t, config)
	rev := put(t, s, "k", "v")
	t.Logf("from nothing to the first write: %v", time.Since(begun))
	for range 3000 { // past a snapshot
		rev = put(t, s, "n", "x")
	}
	closing := time.Now()
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	t.Logf("close: %v", time.Since(closing))
	begun = time.Now()
	_, s = begin(t, config)
	if got := get(t, s, "k"); got != "v" {
		t.Errorf("after a restart the key is %q", got)
	}
	t.Logf("with data to the first read: %v", time.Since(begun))
	if at, _, err := s.Get(t.Context(), "k"); err != nil || at != rev {
		t.Errorf("the revision after a restart is %d (%v), want %d", at, err, rev)
	}
	if next := put(t, s, "k", "w"); next <= rev {
		t.Errorf("the revision of a write after a restart is %d, want more than %d", next, rev)
	}
	for line := range strings.Lines(out.String()) {
		if !strings.Contains(line, "slow fdatasync") && !strings.Contains(line, "took too long") { // of a starved machine
			t.Errorf("it logged: %s", line)
		}
	}
}

func TestCloseEndsAWatchAndIsQuick(t *testing.T) {
	e, s := begin(t, etcdembed.Config{Dir: t.TempDir(), NoFsync: true})
	w, err := s.Watch(t.Context(), "", put(t, s, "k", "v"))
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := w.Next(t.Context())
		ended <- err
	}()
	begun := time.Now()
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begun); took > time.Minute {
		t.Errorf("close took %v", took)
	}
	if err := <-ended; !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("next: got %v, want %v", err, store.ErrUnavailable)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := s.Commit(ctx, store.Txn{Then: []store.Op{store.Put("k", nil)}}); err == nil {
		t.Error("a closed etcd took a write")
	}
}

func TestTheSecondOnADirectoryIsRefusedAtOnce(t *testing.T) {
	dir := t.TempDir()
	begin(t, etcdembed.Config{Dir: dir, NoFsync: true})
	begun := time.Now()
	_, err := etcdembed.Start(t.Context(), etcdembed.Config{Dir: dir})
	if !errors.Is(err, etcdembed.ErrLocked) || !strings.Contains(err.Error(), dir) {
		t.Errorf("got %v, want %v naming the directory", err, etcdembed.ErrLocked)
	}
	if took := time.Since(begun); took > time.Minute {
		t.Errorf("it took %v", took)
	}
}

func TestTwoStandBesideEachOtherAndListenOnNoNetwork(t *testing.T) {
	before := listeners(t)
	_, one := begin(t, etcdembed.Config{Dir: t.TempDir(), NoFsync: true})
	_, two := begin(t, etcdembed.Config{Dir: t.TempDir(), NoFsync: true})
	put(t, one, "k", "one")
	put(t, two, "k", "two")
	if a, b := get(t, one, "k"), get(t, two, "k"); a != "one" || b != "two" {
		t.Errorf("got %q and %q", a, b)
	}
	if after := listeners(t); after != before {
		t.Errorf("new listeners of this process:\nbefore %s\nafter  %s", before, after)
	}
}

// listeners is the inodes of this process's own TCP sockets that listen.
func listeners(t *testing.T) string {
	t.Helper()
	fds, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	own := map[string]bool{}
	for _, fd := range fds {
		if link, err := os.Readlink(fd); err == nil {
			own[link] = true
		}
	}
	var found []string
	for _, table := range []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"} {
		content, err := os.ReadFile(table)
		if err != nil {
			continue // no IPv6
		}
		for line := range strings.Lines(string(content)) {
			f := strings.Fields(line)
			if len(f) > 9 && f[3] == "0A" && own["socket:["+f[9]+"]"] {
				found = append(found, f[1])
			}
		}
	}
	return strings.Join(found, " ")
}

func TestAQuotaThatIsUsedUpIsNoSpace(t *testing.T) {
	const quota, size = 8 << 20, 1 << 20
	_, s := begin(t, etcdembed.Config{Dir: t.TempDir(), NoFsync: true, QuotaBytes: quota, LookAfter: time.Hour})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	// etcd learns how much it has written only when it commits, by time: how many
	// writes it takes is not ours to say.
	var err error
	for err == nil {
		_, err = s.Commit(ctx, store.Txn{Then: []store.Op{store.Put("k", make([]byte, size))}})
	}
	if !errors.Is(err, store.ErrNoSpace) {
		t.Fatalf("with the quota used up: %v", err)
	}
	if st, err := s.Status(t.Context()); err != nil || st.QuotaBytes != quota || st.SizeBytes < quota-2*size {
		t.Errorf("status %+v, error %v", st, err)
	}
	if _, _, err := s.Snapshot(t.Context(), ""); err != nil {
		t.Errorf("it does not read any more: %v", err)
	}
}

func TestAMissingDirectoryIsRefused(t *testing.T) {
	if _, err := etcdembed.Start(t.Context(), etcdembed.Config{}); err == nil {
		t.Error("it started without a directory")
	}
}

// TestHelperKilledServer is not a test: TestItSurvivesSIGKILL runs it as a process
// of its own, which writes and tells until it is killed.
func TestHelperKilledServer(t *testing.T) {
	dir, socket := os.Getenv("STEAD_TEST_KILLED_DIR"), os.Getenv("STEAD_TEST_KILLED_SOCKET")
	if dir == "" {
		t.Skip("needs to be run by TestItSurvivesSIGKILL")
	}
	_, s := begin(t, etcdembed.Config{Dir: dir, Socket: socket})
	for i := 0; ; i++ {
		put(t, s, "k", strings.Repeat("x", i))
		if _, err := os.Stdout.WriteString("."); err != nil {
			return
		}
	}
}

func TestItSurvivesSIGKILL(t *testing.T) {
	dir := t.TempDir()
	short, err := os.MkdirTemp("", "stead") // socket paths are short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(short) })
	socket := filepath.Join(short, "s")
	cmd := exec.Command(os.Args[0], "-test.run=^TestHelperKilledServer$", "-test.v=false")
	cmd.Env = append(os.Environ(), "STEAD_TEST_KILLED_DIR="+dir, "STEAD_TEST_KILLED_SOCKET="+socket)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	buffer := make([]byte, 64)
	acknowledged := 0
	for acknowledged < 200 {
		n, err := out.Read(buffer)
		if err != nil {
			t.Fatalf("after %d writes: %v", acknowledged, err)
		}
		acknowledged += n
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	_, s := begin(t, etcdembed.Config{Dir: dir, Socket: socket}) // the lock is free, the stale socket replaced
	if got := len(get(t, s, "k")); got < acknowledged-1 {
		t.Errorf("the last acknowledged write was number %d, the store has %d", acknowledged-1, got)
	}
	c, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatalf("the socket: %v", err)
	}
	_ = c.Close()
}
