package authorities

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/people"
	"github.com/stead-project/stead/records/sealing"
	"github.com/stead-project/stead/server/access"
	"github.com/stead-project/stead/server/access/accesstest"
	"github.com/stead-project/stead/server/seal"
	"github.com/stead-project/stead/server/servertest"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/trust"
)

// world is a store with an authority, and servers, which are made anew at will.
type world struct {
	*servertest.Mirrored
	t       *testing.T
	key     *seal.Key
	term    store.Leadership
	servers map[string]*Service
	kept    map[string]sealing.Authority // what each server keeps beside the store
}

func newWorld(t *testing.T, names ...string) *world {
	t.Helper()
	key, err := seal.NewKey(make([]byte, seal.KeyBytes))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{Mirrored: servertest.Mirror(t, slog.New(slog.DiscardHandler), store.Put(store.ClusterKey, []byte("0123456789abcdef"))), t: t, key: key,
		servers: map[string]*Service{}, kept: map[string]sealing.Authority{}}
	for _, name := range names {
		w.Record(store.ServerKey(name), records.Server{Name: name})
		w.start(name)
	}
	w.term = store.Leadership{Value: names[0], Created: w.Put(store.LeaderKey, []byte(names[0]))}
	return w
}

// start has a server begin anew, by the store alone.
func (w *world) start(name string) *Service {
	w.t.Helper()
	a := accesstest.Open(w.t, w.Store, w.key)
	s := New(Config{Store: w.Store, Cache: w.Cache, Authority: a, Server: name, Settle: time.Nanosecond, Logger: slog.New(slog.DiscardHandler),
		Kept: func(ctx context.Context) (err error) { w.kept[name], err = a.Stored(ctx); return err }})
	w.servers[name] = s
	return s
}

func (w *world) catchUp() {
	w.t.Helper()
	st, err := w.Store.Status(w.t.Context())
	if err == nil {
		err = w.Cache.Wait(w.t.Context(), st.Rev)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// round has each of the servers follow, and the leader take a step.
func (w *world) round(lead string, names ...string) error {
	for _, name := range names {
		w.catchUp()
		if err := w.servers[name].own(w.t.Context()); err != nil {
			return err
		}
	}
	w.catchUp()
	return w.servers[lead].step(w.t.Context(), w.term, w.servers[lead].look(), true)
}

func (w *world) rounds(names ...string) {
	w.t.Helper()
	for range 3 {
		if err := w.round(names[0], names...); err != nil {
			w.t.Fatal(err)
		}
	}
	w.catchUp()
}

func (w *world) record() sealing.Authority {
	w.t.Helper()
	kv, _ := w.Get(store.AuthorityKey)
	a, err := store.Decode[sealing.Authority](kv)
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

// join lets a node in by a server, and has it come with its certificate.
func (w *world) join(server, name string) {
	w.t.Helper()
	a := w.servers[server].cfg.Authority
	token, err := a.CreateToken(w.t.Context(), time.Minute, "", "")
	if err != nil {
		w.t.Fatal(err)
	}
	mine, err := trust.NewCredential(nil)
	if err != nil {
		w.t.Fatal(err)
	}
	csr, err := mine.Request()
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := a.Enroll(w.t.Context(), access.Enrollment{Token: token.ID, Secret: token.Secret, Node: spec.NodeName(name), UID: spec.UID("u-" + name), Request: csr}); err != nil {
		w.t.Fatal(err)
	}
	w.catchUp()
}

func (w *world) retire(r *proto.RetireAuthorityRequest) error {
	w.catchUp()
	_, err := w.servers["s1"].Retire(w.t.Context(), r)
	w.catchUp()
	return err
}

func (w *world) wait(server string) string {
	w.t.Helper()
	w.catchUp()
	list, err := w.servers[server].List(w.t.Context(), &proto.ListAuthoritiesRequest{})
	if err != nil {
		w.t.Fatal(err)
	}
	return list.GetWait()
}

// uses are the authorities by their use.
func (w *world) uses() string {
	w.t.Helper()
	list, err := w.servers["s1"].List(w.t.Context(), &proto.ListAuthoritiesRequest{})
	if err != nil {
		w.t.Fatal(err)
	}
	var out []string
	for _, a := range list.GetAuthorities() {
		out = append(out, a.GetUse())
	}
	return strings.Join(out, " ")
}

func TestAnAuthorityIsReplacedWhenAllServersTrustTheNext(t *testing.T) {
	w := newWorld(t, "s1", "s2", "s3")
	first := w.record()
	w.rounds("s1", "s2", "s3")
	if _, said := w.Get(store.ServerAuthoritiesKey("s1")); said {
		t.Error("a server says what it trusts while there is one authority")
	}
	w.join("s1", "n1")
	w.Record(store.ClientKey("1f"), people.ClientFile{ID: "1f", Name: "ann", Until: time.Now().Add(time.Hour)})
	w.Record(store.ClientKey("2e"), people.ClientFile{ID: "2e", Name: "old", Until: time.Now().Add(-time.Hour)})
	made, err := w.servers["s1"].Rotate(t.Context(), &proto.RotateAuthorityRequest{})
	if err != nil {
		t.Fatal(err)
	}
	w.catchUp()
	if _, err := w.servers["s1"].Rotate(t.Context(), &proto.RotateAuthorityRequest{}); err == nil {
		t.Error("a second rotation begins")
	}
	w.rounds("s1", "s2")
	if w.record().Next.Issuing || !strings.Contains(w.wait("s1"), "waits for s3: start") {
		t.Errorf("s3 does not trust it: it says %q", w.wait("s1"))
	}
	if err := w.retire(&proto.RetireAuthorityRequest{EndClients: true, WithoutNodes: []string{"n1"}}); err == nil || !strings.Contains(err.Error(), "does not sign yet") {
		t.Errorf("retired while a server does not trust the next one: %v", err)
	}
	w.rounds("s1", "s2", "s3")
	if next := w.record().Next; !next.Issuing || string(access.AuthorityID(next.Certificate)) != made.GetId() || w.kept["s3"].Next == nil || !w.kept["s3"].Next.Issuing {
		t.Fatalf("got %+v", next)
	}
	if got := w.uses(); got != "trusted signs" {
		t.Errorf("the uses are %s", got)
	}
	err = w.retire(&proto.RetireAuthorityRequest{})
	if status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "nodes n1 have") || !strings.Contains(err.Error(), "ann (1f)") || strings.Contains(err.Error(), "old") {
		t.Errorf("got %v", err)
	}
	if err := w.retire(&proto.RetireAuthorityRequest{WithoutNodes: []string{"n9"}}); status.Code(err) != codes.NotFound {
		t.Errorf("a node that nobody knows: %v", err)
	}

	// s2 sees the node, is lost, and another one knows.
	w.arrive("s2", "n1")
	w.rounds("s1", "s2", "s3")
	w.start("s2")
	if err := w.retire(&proto.RetireAuthorityRequest{}); err == nil || strings.Contains(err.Error(), "n1") {
		t.Errorf("the node came: %v", err)
	}
	if _, err := w.servers["s1"].cfg.Authority.CreateToken(t.Context(), time.Hour, "", ""); err != nil {
		t.Fatal(err)
	}
	if err := w.retire(&proto.RetireAuthorityRequest{EndClients: true, DryRun: true}); err != nil || w.record().Next == nil {
		t.Fatalf("a dry run: %v", err)
	}
	if err := w.retire(&proto.RetireAuthorityRequest{EndClients: true}); err != nil {
		t.Fatal(err)
	}
	w.rounds("s1", "s2", "s3")
	after := w.record()
	if after.Next != nil || after.Retired == nil || !slices.Equal(after.Retired.Certificate, first.Certificate) || string(access.AuthorityID(after.Certificate)) != made.GetId() {
		t.Errorf("got %+v", after)
	}
	if strings.Contains(string(store.Encode(after)), string(store.Encode(first.Sealed))) || w.kept["s3"].Next != nil {
		t.Error("the key of the retired authority is still there")
	}
	tokens, err := w.servers["s1"].cfg.Authority.Tokens(t.Context())
	if err != nil || slices.ContainsFunc(tokens, func(k records.JoinToken) bool { return k.UsedBy == "" }) {
		t.Errorf("unused tokens are left: %v, %v", tokens, err)
	}
	if got := w.uses(); got != "retired signs" {
		t.Errorf("the uses are %s", got)
	}
}

// arrive has a node come to a server with a certificate that this one signs now.
func (w *world) arrive(server, node string) {
	w.t.Helper()
	a := w.servers[server].cfg.Authority
	a.Arrivals.Note(spec.NodeName(node), spec.UID("u-"+node), a.Signs())
	w.catchUp()
}

func TestAServerThatIsGoneIsNotWaitedFor(t *testing.T) {
	w := newWorld(t, "s1", "s2")
	if _, err := w.servers["s1"].Rotate(t.Context(), &proto.RotateAuthorityRequest{Without: []string{"s1"}}); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("without itself: %v", err)
	}
	if _, err := w.servers["s1"].Rotate(t.Context(), &proto.RotateAuthorityRequest{Without: []string{"s9"}}); status.Code(err) != codes.NotFound {
		t.Errorf("without a server that nobody knows: %v", err)
	}
	if _, err := w.servers["s1"].Rotate(t.Context(), &proto.RotateAuthorityRequest{}); err != nil {
		t.Fatal(err)
	}
	w.rounds("s1")
	if w.record().Next.Issuing {
		t.Fatal("s2 is not waited for")
	}
	if _, err := w.servers["s1"].Rotate(t.Context(), &proto.RotateAuthorityRequest{Without: []string{"s2"}}); err != nil {
		t.Fatal(err)
	}
	w.rounds("s1")
	if !w.record().Next.Issuing {
		t.Error("it is waited for nevertheless")
	}
	if err := w.retire(&proto.RetireAuthorityRequest{}); err != nil {
		t.Error(err)
	}
}

// Every call of the store fails once, and all servers begin anew: the rotation comes to its end, and there are never two records.
func TestAnAuthoritysRotationOutlivesACrashAtEachStep(t *testing.T) {
	all := []string{"s1", "s2"}
	for n := 1; ; n++ {
		w := newWorld(t, all...)
		if _, err := w.servers["s1"].Rotate(t.Context(), &proto.RotateAuthorityRequest{}); err != nil {
			t.Fatal(err)
		}
		w.FailAt(n)
		failed := false
		for range 8 {
			if err := w.round(all[n%2], all...); err != nil {
				failed = true
				for _, name := range all {
					w.start(name)
				}
			}
		}
		w.Store.Fail(nil)
		w.rounds(all...)
		if !w.record().Next.Issuing {
			t.Fatalf("after a failure at call %d it stopped at %+v", n, w.record().Next)
		}
		if err := w.retire(&proto.RetireAuthorityRequest{}); err != nil {
			t.Fatalf("after a failure at call %d: %v", n, err)
		}
		if !failed {
			if n < 4 {
				t.Fatalf("it took %d calls only", n)
			}
			return
		}
	}
}

// A leader that was replaced, and one that looked before somebody else wrote, change nothing.
func TestAStepComparesWhatItWasDecidedBy(t *testing.T) {
	w := newWorld(t, "s1")
	if _, err := w.servers["s1"].Rotate(t.Context(), &proto.RotateAuthorityRequest{}); err != nil {
		t.Fatal(err)
	}
	w.catchUp()
	s := w.servers["s1"]
	if err := s.own(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.catchUp()
	seen := s.look()
	if err := s.step(t.Context(), store.Leadership{Value: "s9", Created: 1}, seen, true); err == nil {
		t.Error("a server that does not lead takes a step")
	}
	w.Put(store.HoldKey, store.Encode(records.Hold{Cause: "a test"}))
	if err := s.step(t.Context(), w.term, seen, true); err == nil {
		t.Error("a step is taken while the store is held")
	}
	w.Commit(store.Del(store.HoldKey))
	again := w.record()
	again.Next.Without = []string{"s7"}
	w.Record(store.AuthorityKey, again)
	if err := s.step(t.Context(), w.term, seen, true); err == nil || w.record().Next.Issuing {
		t.Errorf("what was written meanwhile is lost: %v", err)
	}
}

// The keyring moves on while the authority is made: nothing is sealed with the key of before.
func TestANewAuthorityIsSealedWithTheKeyThatSeals(t *testing.T) {
	w := newWorld(t, "s1")
	w.Record(store.KeyringKey, sealing.Ring{Sealing: w.key.Sealing()})
	w.Store.Fail(nil)
	if _, err := w.servers["s1"].Rotate(t.Context(), &proto.RotateAuthorityRequest{}); err != nil {
		t.Fatal(err)
	}
	if under := w.key.Under(store.AuthorityKey, w.record().Next.Sealed); under != w.key.Sealing() {
		t.Errorf("it is under %q", under)
	}
	w = newWorld(t, "s1")
	w.Record(store.KeyringKey, sealing.Ring{Sealing: "another"})
	if _, err := w.servers["s1"].Rotate(t.Context(), &proto.RotateAuthorityRequest{}); err == nil {
		t.Error("it is sealed with a key that does not seal any more")
	}
}
