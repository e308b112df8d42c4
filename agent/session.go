package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/agent/files"
	"github.com/stead-project/stead/agent/worker"
	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/proto/wire"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// sessions holds one session after the other until ctx ends. What ends them is
// logged once, not each time.
func (a *Agent) sessions(ctx context.Context) {
	wait, told := a.c.Tuning.RetryFirst, ""
	for {
		welcomed, err := a.session(ctx)
		if ctx.Err() != nil {
			return
		}
		if welcomed {
			wait, told = a.c.Tuning.RetryFirst, ""
		}
		if text := plain(err); text != told {
			a.log.Warn("session ended", "err", text)
			told = text
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait/2 + rand.N(wait)):
		}
		wait = min(2*wait, a.c.Tuning.RetryMost)
	}
}

// plain is an error's sentence without the wrapping of gRPC.
func plain(err error) string {
	if s, ok := status.FromError(err); ok {
		return s.Message()
	}
	return err.Error()
}

// session talks with a server until either side ends it.
func (a *Agent) session(ctx context.Context) (welcomed bool, err error) {
	conn, err := a.c.Dial(ctx)
	if err != nil {
		return false, fmt.Errorf("reach a server: %w", err)
	}
	defer conn.Close()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	client := proto.NewNodesClient(conn)
	stream, welcome, err := a.hello(ctx, cancel, client)
	if err != nil {
		return false, err
	}
	a.log.Info("session began", "server", welcome.GetServer())
	a.welcomed(welcome)
	s := &session{
		a: a, stream: stream, client: client, id: spec.SessionID(welcome.GetSession()),
		ttl: time.Duration(welcome.GetTtlMillis()) * time.Millisecond, pong: time.Now(),
		pings: map[int64]time.Duration{}, guards: a.c.Facts.Guards,
	}
	a.contact.began(s.ttl)
	defer a.contact.ended()
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel(nil)
	a.outbox.again(a.lastReports())
	trash, whole := a.reclaimer.NewSession(ctx)
	group.Go(func() { cancel(s.send(ctx, trash, whole)) })
	err = s.receive(ctx, &group)
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		err = cause
	}
	return true, err
}

// hello opens the session and waits, not for ever, to be welcomed.
func (a *Agent) hello(ctx context.Context, cancel context.CancelCauseFunc, client proto.NodesClient) (grpc.BidiStreamingClient[proto.FromNode, proto.ToNode], *proto.Welcome, error) {
	late := time.AfterFunc(a.c.Tuning.Answer, func() { cancel(errors.New("the server does not answer hello")) })
	defer late.Stop()
	stream, err := client.Session(ctx)
	if err != nil {
		return nil, nil, err
	}
	msg, err := a.helloMessage()
	if err != nil {
		return nil, nil, err
	}
	if err := stream.Send(msg); err != nil {
		return nil, nil, receiveError(stream, err)
	}
	answer, err := stream.Recv()
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return nil, nil, err
	}
	welcome := answer.GetWelcome()
	if welcome == nil {
		return nil, nil, errors.New("the server did not answer hello with welcome")
	}
	if err := a.c.Home.Belong(welcome); err != nil {
		return nil, nil, err
	}
	return stream, welcome, nil
}

// receiveError is the reason for which a stream ended: a failed Send only says EOF.
func receiveError(stream grpc.BidiStreamingClient[proto.FromNode, proto.ToNode], sent error) error {
	if _, err := stream.Recv(); err != nil {
		return err
	}
	return sent
}

func (a *Agent) helloMessage() (*proto.FromNode, error) {
	a.c.Facts.Guards = a.deadlines.Watched()
	facts, err := json.Marshal(a.c.Facts)
	if err != nil {
		return nil, fmt.Errorf("encode the node's facts: %w", err)
	}
	// What is not open yet may be before the server has read this, and it may be a store
	// that never heard of it. Open ones are read last, for a pending one becomes open.
	inventory := &proto.Inventory{}
	a.each(func(id spec.Identity, w *worker.Worker) {
		if token, ok := w.Pending(); ok {
			inventory.Holdings = append(inventory.Holdings, &proto.Holding{Id: wire.Identity(id), Token: wire.Token(token)})
		}
	})
	for _, e := range a.ledger.Entries() {
		if !e.Open.IsZero() {
			inventory.Holdings = append(inventory.Holdings, &proto.Holding{Id: wire.Identity(e.ID), Token: wire.Token(e.Open)})
		}
	}
	return &proto.FromNode{Kind: &proto.FromNode_Hello{Hello: &proto.Hello{
		Node: string(a.c.Home.Name()), Uid: string(a.c.Home.UID()), Boot: string(a.c.Boot), Cluster: a.c.Home.Cluster(),
		FactsJson: facts, Inventory: inventory, Newest: wire.Sequence(a.newest),
		Known: wire.Known(a.memory.now()),
	}}}, nil
}

// session is one welcomed session. Only send sends, only receive receives.
type session struct {
	a      *Agent
	stream grpc.BidiStreamingClient[proto.FromNode, proto.ToNode]
	client proto.NodesClient
	id     spec.SessionID
	ttl    time.Duration

	mu    sync.Mutex
	pong  time.Time
	pings map[int64]time.Duration // when those without an answer were sent, on Clock

	guards bool // what hello said
}

// send sends what lies in the trash, then reports as they come due, and pings; it
// returns when ctx ends, the stream is broken, or the server has not answered a ping
// for a whole TTL.
func (s *session) send(ctx context.Context, trash []records.VolumeReport, whole bool) error {
	if err := s.sendVolumes(whole, trash); err != nil {
		return err
	}
	ping := time.NewTicker(max(s.ttl/5, time.Millisecond))
	defer ping.Stop()
	for n := int64(1); ; {
		due, next := s.a.outbox.take()
		err := s.sendReports(due)
		if err != nil {
			return err
		}
		if said := s.a.reclaimer.TakeReports(); len(said) > 0 {
			err = s.sendVolumes(false, said)
		}
		if err != nil {
			return err
		}
		var later <-chan time.Time
		if next > 0 {
			later = time.After(next)
		}
		select {
		case <-ctx.Done():
			return context.Canceled
		case <-s.a.outbox.wake:
		case <-later:
		case <-ping.C:
			if err := s.stale(); err != nil {
				return err
			}
			s.asked(n)
			if err := s.stream.Send(&proto.FromNode{Kind: &proto.FromNode_Ping{Ping: &proto.Ping{Id: n}}}); err != nil {
				return err
			}
			n++
		}
	}
}

func (s *session) sendVolumes(full bool, reports []records.VolumeReport) error {
	docs, err := wire.Documents(reports)
	if err != nil {
		return err
	}
	return s.stream.Send(&proto.FromNode{Kind: &proto.FromNode_Volumes{Volumes: &proto.VolumeReports{Full: full, ReportsJson: docs}}})
}

func (s *session) sendReports(due []records.Report) error {
	if len(due) == 0 {
		return nil
	}
	for i := range due {
		due[i].Session = s.id
	}
	docs, err := wire.Documents(due)
	if err != nil {
		return err
	}
	for part := range slices.Chunk(docs, reportsAtOnce) {
		if err := s.stream.Send(&proto.FromNode{Kind: &proto.FromNode_Reports{Reports: &proto.Reports{ReportsJson: part}}}); err != nil {
			return err
		}
	}
	return nil
}

// reportsAtOnce keeps a message far below the 4 MiB that a server takes of a node.
const reportsAtOnce = 100

// receive takes what the server says until the stream ends.
func (s *session) receive(ctx context.Context, group *sync.WaitGroup) error {
	for {
		msg, err := s.stream.Recv()
		if err != nil {
			return err
		}
		switch {
		case msg.GetPong() != nil:
			s.answered(msg.GetPong())
		case msg.GetWanted() != nil:
			err = s.a.takeWanted(msg.GetWanted())
		case msg.GetPictures() != nil:
			err = s.a.takePictures(msg.GetPictures())
		case msg.GetFiles() != nil:
			err = s.a.takeFiles(msg.GetFiles())
		case msg.GetStored() != nil:
			err = s.a.takeStored(msg.GetStored())
		case msg.GetAsk() != nil:
			ask := msg.GetAsk()
			group.Go(func() { s.a.answer(ctx, s.client, ask) })
		}
		if err != nil {
			return err
		}
	}
}

// takeBook reads the ConfigMaps and Secrets that an agent before this one kept on
// tmpfs, so that members can be restarted in place while no server is there.
func (a *Agent) takeBook() {
	var kept []records.Files
	if err := readJSON(filepath.Join(a.c.RunDir, bookFile), &kept); err == nil {
		a.book.Put(true, kept)
	}
}

const bookFile = "book.json"

func (a *Agent) keepBook() {
	b, err := json.Marshal(a.book.All())
	if err == nil {
		err = files.Put(a.c.RunDir, bookFile, b, 0o600)
	}
	if err != nil {
		a.log.Warn("files not kept", "err", err)
	}
}
