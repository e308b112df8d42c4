package nameserver

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stead-project/stead/dnsd"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

const dbName, webName = "db.default.svc.cluster.local", "web.default.svc.cluster.local"

// otherProgram is that of another version.
func otherProgram(c *FeederConfig) { c.Sum = sha256.Sum256([]byte("another")) }

// Agents end, begin anew, and are replaced by others with another name server: each question is answered, and never
// from what is older.
func TestNoQuestionIsLostWhateverBecomesOfTheAgent(t *testing.T) {
	p := newPlace(t)
	a := p.agent(nil)
	a.Update(world(10, 1, 2), true)
	p.says(dbName, "1 2")
	stop := p.load(dbName, func(got string) bool { return got == "1 2" })
	t.Log("it ends")
	a.end()
	p.says(dbName, "1 2")
	t.Log("another comes, and knows less than the name server until a server has said what there is")
	a = p.agent(nil)
	a.Update(world(10, 1), false)
	p.eventually("it is fed", func() error {
		a.mu.Lock()
		defer a.mu.Unlock()
		if !a.up {
			return errors.New("not yet")
		}
		return nil
	})
	a.Counts() // what there was to be sent was sent before they were asked for
	if got, err := p.ask(1, dbName); err != nil || got != "1 2" {
		t.Errorf("%q, %v", got, err)
	}
	a.Update(world(11, 1, 2), true)
	t.Log("another version comes, with the same knowledge; no server is there")
	a.end()
	a = p.agent(otherProgram)
	a.Update(world(10, 1), false)
	for range 100 {
		p.says(dbName, "1 2")
	}
	a.Update(world(12, 1, 2), true)
	p.eventually("the other version answers alone", func() error {
		list, _ := running(p.dir, "", a.path)
		_, others := running(p.dir, "", a.path)
		if len(list)+len(others) > 0 {
			return fmt.Errorf("%v %v", list, others)
		}
		return nil
	})
	t.Log("and the first again, time after time")
	for i := range 6 {
		a.end()
		a = p.agent(func(c *FeederConfig) {
			if i%2 == 1 {
				otherProgram(c)
			}
		})
		a.Update(world(20+int64(i), 1, 2), true)
		p.says(dbName, "1 2")
	}
	if n := stop(); n < 100 {
		t.Errorf("%d answers", n)
	}
	a.Update(world(30, 3), true)
	p.says(dbName, "3")
}

// What changes is sent alone, and is all there is to be sent.
func TestChangesReachTheNameServer(t *testing.T) {
	p := newPlace(t)
	a := p.agent(nil)
	for rev, members := range [][]byte{{1}, {1, 2}, {2}, {}, {1, 2, 3}} {
		a.Update(world(int64(rev), members...), true)
		want := strings.Trim(fmt.Sprint(members), "[]")
		p.says(dbName, want)
	}
	s := world(10, 1)
	s.Pictures, s.Others = s.Pictures[1:], nil
	a.Update(s, true)
	p.says(dbName, "rcode 3")
	p.says("web-0."+webName, "1")
	a.Update(dnsd.Snapshot{Domain: "cluster.local", Sequence: spec.Sequence{Epoch: 1, Rev: 11}}, true)
	p.says("web-0."+webName, "rcode 3")
}

// What was given to a name server is answered from when Update returns: members read it in their files then.
func TestAnUpdateIsAnsweredFromWhenItReturns(t *testing.T) {
	p := newPlace(t)
	a := p.agent(nil)
	a.Update(world(1, 1), true)
	p.says(dbName, "1")
	slow := 0
	for i := range 100 {
		n := byte(2 + i)
		a.Update(world(int64(2+i), n), true)
		if got, err := p.ask(1, dbName); err != nil || got != fmt.Sprint(n) {
			slow++ // a machine that is busy for longer than Update waits
		}
	}
	if slow > 10 {
		t.Errorf("%d of 100 updates were not answered from", slow)
	}
}

// A name server that is killed is started again on the same sockets: what is asked meanwhile waits there.
func TestAKilledNameServerIsStartedAgain(t *testing.T) {
	p := newPlace(t)
	a := p.agent(nil)
	a.Update(world(1, 1), true)
	p.says(dbName, "1")
	for range 3 {
		if err := syscall.Kill(<-p.pids, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if got, err := p.ask(1, dbName); err != nil || got != "1" {
			t.Errorf("%q, %v", got, err)
		}
	}
	t.Log("killed while no agent is there: the next one begins with what it knew")
	pid := <-p.pids
	a.end()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	a = p.agent(nil)
	a.Update(world(1, 1), false)
	p.says(dbName, "1")
}

// Of another cluster, or another boot, nothing is answered any more.
func TestOfAnotherClusterOrBootNothingIsAnswered(t *testing.T) {
	p := newPlace(t)
	a := p.agent(nil)
	a.Update(world(100, 1), true)
	p.says(dbName, "1")
	a.end()
	a = p.agent(func(c *FeederConfig) { c.Task.Home = "another" })
	p.says(dbName, "rcode 2")
	a.Update(world(1, 2), true)
	p.says(dbName, "2")
}

// An unfollowed name is followed by the agent; while that is away, for as long as a question is held, then it is
// SERVFAIL and never denied.
func TestAnUnfollowedNameIsFollowedByTheAgent(t *testing.T) {
	p := newPlace(t)
	var a *agent
	full := func(rev int64) dnsd.Snapshot {
		s := world(rev, 1)
		s.Pictures[1].Brief, s.Pictures[1].Peers[0].Ready, s.Others = false, true, nil
		return s
	}
	wanted := make(chan dnsd.Interest, 10)
	follow := func(_ context.Context, i dnsd.Interest) error {
		wanted <- i
		if i.Address.IsValid() {
			return errors.New("nobody knows")
		}
		a.Update(full(2), true)
		return nil
	}
	a = p.agent(func(c *FeederConfig) { c.Follow = follow })
	a.Update(world(1, 1), true)
	p.says(dbName, "1")
	if got, err := p.ask(1, webName); err != nil || got != "1" {
		t.Errorf("%q, %v", got, err)
	}
	if i := <-wanted; i.Set.Name != "web" {
		t.Errorf("followed %+v", i)
	}
	if got, err := p.ask(1, "9.1.88.10.in-addr.arpa"); err != nil || !strings.HasPrefix(got, "rcode") {
		t.Errorf("%q, %v", got, err)
	}
	c := a.Counts()
	if c.Held == 0 || c.Names == 0 || len(c.Answers) == 0 {
		t.Errorf("counts %+v", c)
	}
	a.Update(world(3, 1), true)
	a.end()
	if got, err := p.ask(1, webName); err != nil || got != "rcode 2" {
		t.Errorf("without the agent: %q, %v", got, err)
	}
}

// Addresses may change: those that stay are handed on, others come and go.
func TestAddressesComeAndGo(t *testing.T) {
	p := newPlace(t)
	a := p.agent(nil)
	a.Update(world(1, 1), true)
	p.says(dbName, "1")
	stop := p.load(dbName, func(got string) bool { return got == "1" })
	more, err := dnsd.BindSockets(t.Context(), netip.MustParseAddrPort("127.0.0.1:0"))
	if err != nil {
		t.Fatal(err)
	}
	more.Close()
	a.end()
	a = p.agent(func(c *FeederConfig) { c.Task.Listen = append(c.Task.Listen, more.Addr) })
	a.Update(world(2, 1), true)
	second := &place{t: t, addr: more.Addr}
	second.says(dbName, "1")
	a.end()
	a = p.agent(nil)
	a.Update(world(3, 1), true)
	p.eventually("the second address is free", func() error {
		k, err := dnsd.BindSockets(t.Context(), more.Addr)
		if err == nil {
			k.Close()
		}
		return err
	})
	stop()
}

func TestWhatDiffersIsSent(t *testing.T) {
	first := world(1, 1, 2)
	c, had := difference(nil, &first)
	if !c.Whole || len(c.Sets) != 2 || len(c.Gone) != 0 {
		t.Errorf("at first: %+v", c)
	}
	var there sets
	there.apply(c)
	again := world(2, 1, 2) // other lists, of the same
	c, had = difference(had, &again)
	if c.Whole || len(c.Sets)+len(c.Gone) != 0 || c.Sequence.Rev != 2 {
		t.Errorf("the same again: %+v", c)
	}
	next := world(3, 1, 3)
	next.Pictures[1] = records.Snapshot{Ref: spec.SetRef{Namespace: "a", Name: "first"}, Service: "first"}
	c, had = difference(had, &next)
	if len(c.Sets) != 1 || len(c.Peers) != 1 || len(c.Gone) != 1 || c.Gone[0].Name != "web" || len(had) != 2 {
		t.Errorf("one changed, one came, one went: %+v", c)
	}
	there.apply(c)
	if len(there) != 2 || there[0].Ref.Name != "first" || there[1].Ref.Name != "db" || there[1].Peers[1].Address != netip.MustParseAddr("10.88.0.3") {
		t.Errorf("the process has %+v", there)
	}
}

// What a process is left with by differences is what it would have been sent as a whole.
func TestTheProcessHasWhatItWouldHaveBeenSentWhole(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 0))
	whole := 0
	for range 30 {
		var there sets
		var had map[spec.SetRef]records.Snapshot
		var peers []records.Peer
		for step := range 60 {
			peers = slices.Clone(peers)
			for range dice.IntN(4) {
				ordinal := dice.IntN(20)
				peers = slices.DeleteFunc(peers, func(p records.Peer) bool { return p.Ordinal == ordinal })
				if dice.IntN(4) > 0 {
					peers = append(peers, records.Peer{Name: fmt.Sprint("db-", ordinal), Ordinal: ordinal, Ready: dice.IntN(2) == 0})
				}
			}
			if dice.IntN(8) > 0 {
				slices.SortFunc(peers, func(a, b records.Peer) int { return a.Ordinal - b.Ordinal })
			}
			next := dnsd.Snapshot{Pictures: []records.Snapshot{{
				Ref: spec.SetRef{Namespace: "a", Name: "db"}, Service: []string{"db", "other"}[max(0, dice.IntN(12)-10)], Peers: peers, Gone: dice.IntN(15) == 0,
			}}}
			var c *change
			c, had = difference(had, &next)
			text, err := json.Marshal(c)
			var sent change
			if err := errors.Join(err, json.Unmarshal(text, &sent)); err != nil {
				t.Fatal(err)
			}
			there.apply(&sent)
			whole += len(c.Sets)
			want := 1
			if next.Pictures[0].Gone {
				want = 0
			}
			if len(there) != want || want == 1 && (there[0].Service != next.Pictures[0].Service || !slices.Equal(there[0].Peers, peers)) {
				t.Fatalf("step %d: got %+v, want %+v", step, there, next.Pictures)
			}
		}
	}
	if whole > 1200 {
		t.Errorf("of 1800 changes %d were sent as a whole", whole)
	}
}
