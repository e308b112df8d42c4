package dispatch

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/proto"
)

// asked are the ids of the asks that wait to be sent.
func (se *session) asked() (ids []string) {
	out, _ := se.out.take(0)
	for _, m := range out {
		if m.GetAsk() != nil {
			ids = append(ids, m.GetAsk().GetId())
		}
	}
	return ids
}

func TestANodeIsAskedSoManyThingsAtOnce(t *testing.T) {
	r := newStill(t)
	se := r.admit()
	for n := range maxAsks {
		if !se.out.addAsk(&proto.Ask{}) {
			t.Fatalf("ask %d of %d is refused", n+1, maxAsks)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // who is not refused does not wait
	if _, err := r.server.Broker().Open(ctx, "n1", &proto.Ask{}); status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "busy") {
		t.Errorf("one more: %v", err)
	}
	if got := se.asked(); len(got) != maxAsks {
		t.Errorf("%d are sent, want %d", len(got), maxAsks)
	}
	if !se.out.addAsk(&proto.Ask{}) {
		t.Error("they were sent, and the next is refused")
	}
}

func TestAnAskIsAnsweredOnceAndInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newStill(t)
		se, b := r.admit(), r.server.Broker()
		type answer struct {
			t   *Tunnel
			err error
		}
		open := func(ctx context.Context) (id string, answers chan answer) {
			answers = make(chan answer, 1)
			go func() {
				tunnel, err := b.Open(ctx, "n1", &proto.Ask{})
				answers <- answer{tunnel, err}
			}()
			synctest.Wait()
			ids := se.asked()
			if len(ids) != 1 {
				t.Fatalf("asked is %q, want one", ids)
			}
			return ids[0], answers
		}
		id, answers := open(t.Context())
		if node, waits := b.Asked(id); node != "n1" || !waits {
			t.Errorf("asked is %s, waited for: %v", node, waits)
		}
		first, second := newTunnel(), newTunnel()
		if !b.deliver(id, first) || b.deliver(id, second) {
			t.Error("it is to be answered once")
		}
		if got := <-answers; got.t != first || got.err != nil {
			t.Errorf("got %v, %v", got.t, got.err)
		}
		id, answers = open(t.Context())
		time.Sleep(b.AnswerTime() - 1)
		if _, waits := b.Asked(id); !waits {
			t.Error("the node has time left, and is not waited for")
		}
		time.Sleep(time.Nanosecond)
		if got := <-answers; status.Code(got.err) != codes.Unavailable || !strings.Contains(got.err.Error(), "did not answer") {
			t.Errorf("after its time: %v", got.err)
		}
		if _, waits := b.Asked(id); waits || b.deliver(id, newTunnel()) {
			t.Error("after its time it is waited for")
		}
		ctx, cancel := context.WithCancel(t.Context())
		_, answers = open(ctx)
		cancel()
		if got := <-answers; status.Code(got.err) != codes.Canceled {
			t.Errorf("who asked went away: %v", got.err)
		}
	})
}

// A tunnel that comes at the very moment at which nobody waits any more is closed, so that its
// node does not hold it.
func TestATunnelThatCameTooLateIsClosed(t *testing.T) {
	b := newStill(t).server.Broker()
	late, answer := newTunnel(), make(chan *Tunnel, 1)
	b.waiting["id"] = waiter{"n1", answer}
	if !b.deliver("id", late) {
		t.Fatal("it was not waited for")
	}
	b.stopWaiting("id", answer)
	if _, err := late.Recv(); status.Code(err) != codes.Canceled {
		t.Errorf("got %v, want it closed", err)
	}
}
