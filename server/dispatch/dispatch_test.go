package dispatch

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/store"
)

func TestAServerIsMadeOfAllItsPartsOnly(t *testing.T) {
	r := newStill(t)
	for name, c := range map[string]struct {
		change func(*Config)
		ok     bool
	}{
		"all":                           {func(*Config) {}, true},
		"no store":                      {func(c *Config) { c.Store = nil }, false},
		"no world":                      {func(c *Config) { c.Cache = nil }, false},
		"no key":                        {func(c *Config) { c.Key = nil }, false},
		"no logger":                     {func(c *Config) { c.Logger = nil }, false},
		"no name":                       {func(c *Config) { c.Name = "" }, false},
		"no domain":                     {func(c *Config) { c.Domain = "" }, false},
		"the shortest session":          {func(c *Config) { c.TTL = time.Second }, true},
		"a session that cannot be kept": {func(c *Config) { c.TTL = time.Second - 1 }, false},
	} {
		cfg := Config{Store: r.Store, Cache: r.Cache, Key: r.key, Logger: slog.New(slog.DiscardHandler), Name: "s1", Domain: "cluster.local"}
		c.change(&cfg)
		s, err := New(cfg)
		if (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil && cfg.TTL == 0 && (s.cfg.TTL != 15*time.Second || s.Broker().AnswerTime() != 10*time.Second || s.cfg.Known().Origin != "") {
			t.Errorf("%s: defaults are %+v", name, s.cfg)
		}
	}
}

func TestADeskTellsAllOnceThenWhatDiffers(t *testing.T) {
	r := newStill(t)
	r.begin()
	h := r.hand(n1)
	if w := h.tells().wanted; !w.GetFull() {
		t.Errorf("at first it tells %v; want all", w)
	}
	if w := h.tells().wanted; w != nil {
		t.Errorf("nothing changed, and it tells %v", w)
	}
	r.live(1, 20, "n1", "uid1")
	if w := h.tells().wanted; w == nil || w.GetFull() {
		t.Errorf("one life is new, and it tells %v; want that one", w)
	}
	h.sent = nil
	h.Receive(&proto.FromNode{Kind: &proto.FromNode_Ping{Ping: &proto.Ping{Id: 7}}})
	r.server.AnswerPings(t.Context())
	if err := h.SendAnswers(); err != nil || len(h.sent) != 1 || h.sent[0].GetPong().GetId() != 7 {
		t.Errorf("it was asked, and answers %v, %v", h.sent, err)
	}
	hungUp := errors.New("the node hung up")
	h.fail = func(*proto.ToNode) error { return hungUp }
	r.live(2, 30, "n1", "uid1")
	if err := h.Send(); !errors.Is(err, hungUp) {
		t.Errorf("what it tells does not arrive: %v", err)
	}
	h.fail = nil
	h.Close()
	if err := h.Send(); !errors.Is(err, context.Canceled) {
		t.Errorf("after its end it tells, with %v", err)
	}
	if err := h.SendAnswers(); !errors.Is(err, context.Canceled) {
		t.Errorf("after its end it answers, with %v", err)
	}
	if n := r.server.Sessions(); n != 0 {
		t.Errorf("after its end there are %d sessions", n)
	}
}

func TestTheEndOfASessionLeavesTheNextOneOfItsNode(t *testing.T) {
	r := newStill(t)
	desks := []*hand{r.hand(n1), r.hand(n1)}
	if got := status.Code(context.Cause(desks[0].se.ctx)); got != codes.Aborted {
		t.Errorf("the first ended with %v, want ABORTED", got)
	}
	desks[0].Close()
	if n := r.server.Sessions(); n != 1 {
		t.Errorf("%d sessions are left, want the second", n)
	}
	out, _, err := r.server.broker.find(t.Context(), "n1", nil, time.After(patience))
	if err != nil || out != desks[1].se.out {
		t.Errorf("asks go elsewhere, or %v", err)
	}
	desks[1].Close()
	late := make(chan time.Time, 1)
	late <- time.Now()
	if _, _, err := r.server.broker.find(t.Context(), "n1", nil, late); status.Code(err) != codes.Unavailable {
		t.Errorf("when both are over: %v", err)
	}
}

func TestAServerThatStopsBeginsNoSession(t *testing.T) {
	r := newRig(t)
	r.stop()
	<-r.done
	if err := r.server.Session(handStream{}); status.Code(err) != codes.Unavailable {
		t.Errorf("a stream: got %v", err)
	}
	if _, there := r.Get(store.SessionKey("n1")); there {
		t.Error("the stream has a session")
	}
	se := r.admit()
	if cause := context.Cause(se.ctx); status.Code(cause) != codes.Unavailable {
		t.Errorf("one that was admitted meanwhile ends with %v", cause)
	}
}

func TestANodeThatHangsUpEndsItsSessionWithoutAnError(t *testing.T) {
	r := newRig(t)
	n := r.connect(n1)
	n.welcome()
	if err := n.stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if err := n.ended(); !errors.Is(err, io.EOF) {
		t.Errorf("got %v", err)
	}
}
