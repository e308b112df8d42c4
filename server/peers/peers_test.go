package peers

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/internal/durable"
	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/stores"
	"github.com/stead-project/stead/server/access"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/engine"
	"github.com/stead-project/stead/server/seal"
	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/store/memstore"
)

// members is the store of s1 and s2, as s1 has it.
type members struct {
	list   []stores.StoreMember
	leader string
	err    error // while there is no majority
	elects int   // how many times an election is under way
	at     stores.Mark
	acked  stores.Mark // by each
	gone   string      // of the one that was removed
	left   []string    // were removed now
}

func (m *members) Self() string                { return "1" }
func (m *members) Leader() string              { return m.leader }
func (m *members) Known() []stores.StoreMember { return m.list }
func (m *members) Removed(id string) bool      { return id == m.gone }
func (m *members) Remove(_ context.Context, id, _ string) error {
	m.left = append(m.left, id)
	return nil
}
func (m *members) Acked(string) stores.Mark { return m.acked }
func (m *members) Health() stores.StoreHealth {
	return stores.StoreHealth{Term: m.at.Term, Index: m.at.Index}
}
func (m *members) Members(context.Context) ([]stores.StoreMember, error) {
	if m.elects > 0 {
		m.elects--
		return nil, errors.New("leader changed")
	}
	return m.list, m.err
}
func (m *members) AddLearner(_ context.Context, peer string) ([]stores.StoreMember, error) {
	m.list = append(m.list, stores.StoreMember{ID: "9", Peer: peer, Learner: true})
	return m.list, nil
}

// rig is s1 and its authority.
type rig struct {
	t         *testing.T
	store     *memstore.Store
	authority *access.Authority
	members   *members
	service   *Service
	dir       string
}

func newRig(t *testing.T) *rig {
	t.Helper()
	s := memstore.New()
	if _, _, err := engine.Init(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	key, err := seal.Ensure(filepath.Join(dir, "secret.key"))
	if err != nil {
		t.Fatal(err)
	}
	a, err := access.OpenAuthority(t.Context(), access.AuthorityConfig{Store: s, Key: key, Server: "s1", Addresses: []string{"127.0.0.1:1"}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	c := cache.New(s, slog.New(slog.DiscardHandler))
	rev, kvs, err := s.Snapshot(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Load(rev, kvs); err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, store: s, authority: a, dir: dir, members: &members{leader: "1", list: []stores.StoreMember{
		{ID: "1", Name: "s1", Peer: "127.0.0.1:2"}, {ID: "2", Name: "s2", Peer: "127.0.0.1:3"}, {ID: "3", Name: "s3", Peer: "127.0.0.1:4"},
	}}}
	r.service = New(Config{Store: s, Members: r.members, Cache: c, Authority: a, Dir: dir, Logger: slog.New(slog.DiscardHandler),
		Self: records.Server{Name: "s1", UID: "u1", Peer: "127.0.0.1:2"}})
	return r
}

// reload has s1 know the store as it is.
func (r *rig) reload() {
	r.t.Helper()
	c := cache.New(r.store, slog.New(slog.DiscardHandler))
	rev, kvs, err := r.store.Snapshot(r.t.Context(), "")
	if err == nil {
		err = c.Load(rev, kvs)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	r.service.cfg.Cache = c
}

// serve has s1 answer other servers, and returns its address.
func (r *rig) serve() string {
	r.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		r.t.Fatal(err)
	}
	g := grpc.NewServer(grpc.Creds(credentials.NewTLS(r.authority.TLS())))
	proto.RegisterServersServer(g, r.service)
	done := make(chan struct{})
	go func() { defer close(done); _ = g.Serve(l) }()
	r.t.Cleanup(func() { g.Stop(); <-done })
	return l.Addr().String()
}

// TestDataThatWentBackIsNoticed: by what the server itself kept, and by what another server has seen.
func TestDataThatWentBackIsNoticed(t *testing.T) {
	r := newRig(t)
	seen := stores.Mark{Term: 3, Index: 10}
	for range 2 { // what was seen is kept with the next look
		if err := r.service.note(map[string]stores.Mark{"2": seen}, nil); err != nil {
			t.Fatal(err)
		}
	}
	other := r.serve()
	own := t.TempDir()
	if err := durable.PutJSON(marksPath(own), marks{Marks: map[string]stores.Mark{"2": seen}}); err != nil {
		t.Fatal(err)
	}
	behind := stores.Mark{Term: 3, Index: 9}
	for name, c := range map[string]struct {
		dir     string
		servers []string
		have    stores.Mark
		says    string
	}{
		"its server knows":           {own, nil, behind, "went back"},
		"another server knows":       {t.TempDir(), []string{"127.0.0.1:1", other}, behind, "went back"},
		"nobody knows":               {t.TempDir(), nil, behind, ""},
		"it is as it was":            {own, []string{other}, seen, ""},
		"the other one does not run": {t.TempDir(), []string{"127.0.0.1:1"}, behind, ""},
	} {
		err := Check(t.Context(), r.authority, c.dir, "s2", "2", c.have, c.servers)
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v; want %q", name, err, c.says)
		}
	}
	if err := Check(t.Context(), r.authority, own, "s2", "another member", behind, nil); err != nil {
		t.Errorf("another member: %v", err)
	}
	// Of one that was removed nothing is kept by those who know it, so that old data of it would not be noticed.
	r.members.gone = "9"
	if err := Check(t.Context(), r.authority, t.TempDir(), "s2", "9", seen, []string{"127.0.0.1:1", other}); !errors.Is(err, stores.ErrRemoved) {
		t.Errorf("a member that was removed: %v", err)
	}
	// What was acknowledged to the leader a moment ago is in nobody's notes yet.
	r.members.acked = stores.Mark{Term: 3, Index: 11}
	for at, back := range map[stores.Mark]bool{seen: true, {Term: 3, Index: 11}: false, {Term: 4, Index: 10}: false, {Term: 2, Index: 12}: true} {
		if err := Check(t.Context(), r.authority, t.TempDir(), "s2", "2", at, []string{other}); (err != nil) != back {
			t.Errorf("%+v acknowledged, its log at %+v: %v", r.members.acked, at, err)
		}
	}
}

// TestWhatWasSeenIsKeptALookLater: a member applies a write a moment before it is in its log.
func TestWhatWasSeenIsKeptALookLater(t *testing.T) {
	r := newRig(t)
	look := func(index uint64, want uint64) {
		t.Helper()
		if err := r.service.note(map[string]stores.Mark{"1": {Term: 1, Index: index}}, []string{"a:1"}); err != nil {
			t.Fatal(err)
		}
		kept, err := loadMarks(r.dir)
		if err != nil || kept.Marks["1"].Index != want {
			t.Errorf("kept is %+v, %v; want %d", kept, err, want)
		}
	}
	look(10, 0)
	look(12, 10)
	look(11, 12)
	look(11, 12) // never back
	r.members.list = r.members.list[1:]
	if err := r.service.note(map[string]stores.Mark{}, nil); err != nil {
		t.Fatal(err)
	}
	if kept, err := loadMarks(r.dir); err != nil || len(kept.Marks) != 0 {
		t.Errorf("of a member that is gone there is %+v, %v", kept, err)
	}
}

// TestWithoutAMajorityItIsSaidWhatToDo: the list says it, a removal is refused with it, and so is each call that failed.
func TestWithoutAMajorityItIsSaidWhatToDo(t *testing.T) {
	r := newRig(t)
	if text := r.service.Lost(t.Context()); text != "" {
		t.Errorf("with a leader it says %q", text)
	}
	r.members.leader, r.members.err = "", context.DeadlineExceeded
	const want = "the store has no majority: 1 of its 3 servers"
	list, err := r.service.List(t.Context(), &proto.ListServersRequest{})
	if err != nil || !strings.HasPrefix(list.GetLost(), want) || len(list.GetServers()) != 3 || list.GetServers()[1].GetReachable() {
		t.Errorf("got %v, %v", list, err)
	}
	if text := r.service.Lost(t.Context()); !strings.HasPrefix(text, want) {
		t.Errorf("it says %q", text)
	}
	if _, err := r.service.Remove(t.Context(), &proto.RemoveServerRequest{Name: "s3"}); status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), want) {
		t.Errorf("a removal: %v", err)
	}
}

// After 'stead server recover' another store answers at the address of a member of the old one, which has no majority by that.
func TestWhoRunsAnotherMemberDoesNotCountAsThere(t *testing.T) {
	r := newRig(t)
	other := r.serve() // it says that it is member 1
	for _, name := range []string{"s2", "s3"} {
		if _, err := r.store.Commit(t.Context(), store.Txn{Then: []store.Op{store.Put(store.ServerKey(name), store.Encode(records.Server{Name: name, UID: "u", Addresses: []string{other}}))}}); err != nil {
			t.Fatal(err)
		}
	}
	r.reload()
	list, err := r.service.List(t.Context(), &proto.ListServersRequest{})
	if err != nil || !list.GetServers()[0].GetReachable() || list.GetServers()[1].GetReachable() || list.GetServers()[2].GetReachable() {
		t.Errorf("member 1 answers for all: %v, %v", list, err)
	}
	if _, err := r.service.Remove(t.Context(), &proto.RemoveServerRequest{Name: "s3"}); status.Code(err) != codes.FailedPrecondition || len(r.members.left) != 0 {
		t.Errorf("a removal that leaves one of two: %v, %v", err, r.members.left)
	}
}

// A server was added, never started, and its record went: with a removal that broke off, or with its next try at another address.
func TestAMemberThatNoRecordNamesIsRemovedByItsAddress(t *testing.T) {
	r := newRig(t)
	r.members.list = []stores.StoreMember{{ID: "1", Name: "s1", Peer: "127.0.0.1:2"}, {ID: "8", Peer: "127.0.0.1:8", Learner: true}}
	list, err := r.service.List(t.Context(), &proto.ListServersRequest{})
	if err != nil || len(list.GetServers()) != 2 || !strings.Contains(list.GetServers()[0].GetTrouble(), "'stead server remove 127.0.0.1:8'") {
		t.Errorf("the list is %v, %v", list, err)
	}
	if _, err := r.service.Remove(t.Context(), &proto.RemoveServerRequest{Name: "127.0.0.1:8"}); err != nil || len(r.members.left) != 1 || r.members.left[0] != "8" {
		t.Errorf("removed are %v, %v", r.members.left, err)
	}
}

func TestAnElectionIsWaitedFor(t *testing.T) {
	r := newRig(t)
	r.members.list = r.members.list[:1]
	r.members.elects = 2
	if _, err := r.service.Remove(t.Context(), &proto.RemoveServerRequest{Name: "nobody"}); status.Code(err) != codes.NotFound {
		t.Errorf("while the store elects a leader: %v", err)
	}
}

// The record is there before the member.
func TestAServerIsAddedOnceAndItsNameIsItsOwn(t *testing.T) {
	r := newRig(t)
	add := func(s records.Server) error {
		_, err := r.service.Add(t.Context(), &proto.AddServerRequest{ServerJson: store.Encode(s)})
		return err
	}
	if err := add(records.Server{Name: "s4", UID: "u4", Peer: "127.0.0.1:5"}); err != nil {
		t.Fatal(err)
	}
	if err := add(records.Server{Name: "s4", UID: "u4", Peer: "127.0.0.1:5"}); err != nil || len(r.members.list) != 4 {
		t.Errorf("again: %v, %v", err, r.members.list)
	}
	if err := add(records.Server{Name: "s4", UID: "other", Peer: "127.0.0.1:6"}); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("another directory under its name: %v", err)
	}
	if err := add(records.Server{Name: "s2", UID: "u2", Peer: "127.0.0.1:3"}); status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "stead server replace s2") {
		t.Errorf("a member without its data: %v", err)
	}
}

// A server that would end when it looks at the store is not made a member of it: the others would miss it.
func TestAServerThatKnowsTooLittleOfTheStoreIsNotAdded(t *testing.T) {
	for _, c := range []struct {
		lowest, knows int
		refused       bool
	}{{2, 0, false}, {3, 0, true}, {3, 2, true}, {3, 3, false}} {
		r := newRig(t)
		if _, err := r.store.Commit(t.Context(), store.Txn{Then: []store.Op{store.Put(store.FormatKey, store.Encode(records.Format{Lowest: c.lowest, Why: "a test"}))}}); err != nil {
			t.Fatal(err)
		}
		self := records.Server{Name: "s4", UID: "u4", Peer: "127.0.0.1:5"}
		_, err := r.service.Add(t.Context(), &proto.AddServerRequest{ServerJson: store.Encode(self), KnowsFormat: int32(c.knows)})
		if refused := status.Code(err) == codes.FailedPrecondition && strings.Contains(err.Error(), "the store has format 3 (a test)"); refused != c.refused || !c.refused && err != nil {
			t.Errorf("format %d, and it knows %d: %v", c.lowest, c.knows, err)
		}
		if (len(r.members.list) == 3) != c.refused {
			t.Errorf("format %d, and it knows %d: the members are %v", c.lowest, c.knows, r.members.list)
		}
	}
}

// TestAServerThatIsAloneTakesANameOfTheBackup: its store was unpacked from a backup, which names servers that are lost.
func TestAServerThatIsAloneTakesANameOfTheBackup(t *testing.T) {
	r := newRig(t)
	before := []store.Op{
		store.Put(store.ServerKey("s1"), store.Encode(records.Server{Name: "s1", UID: "lost", Peer: "127.0.0.1:2"})),
		store.Put(store.ServerKey("s0"), store.Encode(records.Server{Name: "s0", UID: "u0", Peer: "127.0.0.1:9"})),
	}
	if _, err := r.store.Commit(t.Context(), store.Txn{Then: before}); err != nil {
		t.Fatal(err)
	}
	if err := r.service.Register(t.Context()); err == nil || !strings.Contains(err.Error(), "another --name") {
		t.Errorf("beside others: %v", err)
	}
	r.members.list = r.members.list[:1]
	if err := r.service.Register(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, kvs, err := r.store.Get(t.Context(), store.ServerKey("s1"))
	if err != nil {
		t.Fatal(err)
	}
	if now, err := store.DecodeIn[records.Server](kvs, store.ServerKey("s1")); err != nil || now.UID != "u1" {
		t.Errorf("the record is %+v, %v", now, err)
	}
	r.reload()
	list, err := r.service.List(t.Context(), &proto.ListServersRequest{})
	if err != nil || len(list.GetServers()) != 2 || !strings.Contains(list.GetServers()[0].GetTrouble(), "stead server remove s0") {
		t.Errorf("a server of the backup that is no member: %v, %v", list, err)
	}
}
