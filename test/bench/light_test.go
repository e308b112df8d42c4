package bench

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/stead-project/stead/internal/backoff"
	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/proto/wire"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// light is a node that speaks the protocol of a session, and says of each life at once that it
// is ready or that it has stopped.
type light struct {
	name    string
	link    *link
	cluster string
	session spec.SessionID

	mu   sync.Mutex
	runs map[spec.LifeID]bool
}

// run has one session after the other until ctx ends, and waits between them as an agent does.
func (l *light) run(ctx context.Context) {
	l.runs = map[spec.LifeID]bool{}
	failures := 0
	for ctx.Err() == nil {
		welcomed, err := l.connect(ctx)
		if ctx.Err() == nil {
			l.link.ended(err)
		}
		if welcomed {
			failures = 0
		}
		failures++
		wait := backoff.After(100*time.Millisecond, 5*time.Second, failures)
		backoff.Sleep(ctx, wait/2+rand.N(wait))
	}
}

// connect has one session.
func (l *light) connect(ctx context.Context) (welcomed bool, err error) {
	conn, err := l.link.dial(ctx)
	if err != nil {
		return false, err
	}
	defer conn.Close()
	hello, err := l.hello()
	if err != nil {
		return false, err
	}
	nodes := proto.NewNodesClient(conn)
	if l.cluster == "" {
		welcome, err := nodes.Join(ctx, hello)
		if err != nil {
			return false, err
		}
		l.cluster = welcome.GetCluster()
	}
	hello.Cluster = l.cluster
	s, err := nodes.Session(ctx)
	if err != nil {
		return false, err
	}
	if err := s.Send(&proto.FromNode{Kind: &proto.FromNode_Hello{Hello: hello}}); err != nil {
		return false, err
	}
	m, err := s.Recv()
	if err != nil {
		return false, err
	}
	l.session = spec.SessionID(m.GetWelcome().GetSession())
	return true, l.converse(ctx, s, time.Duration(m.GetWelcome().GetTtlMillis())*time.Millisecond)
}

// hello says who the node is and what it runs.
func (l *light) hello() (*proto.Hello, error) {
	facts, err := json.Marshal(records.NodeFacts{Name: spec.NodeName(l.name), CPUMillis: 1 << 40, MemoryBytes: 1 << 50})
	if err != nil {
		return nil, err
	}
	h := &proto.Hello{Node: l.name, Uid: "u-" + l.name, Boot: "b1", FactsJson: facts, Inventory: &proto.Inventory{}, Differences: true, Interest: true}
	l.mu.Lock()
	defer l.mu.Unlock()
	for life := range l.runs {
		h.Inventory.Holdings = append(h.Inventory.Holdings, &proto.Holding{Id: wire.Identity(life.ID), Token: wire.Token(life.Token)})
	}
	return h, nil
}

// converse answers orders, and pings.
func (l *light) converse(ctx context.Context, s grpc.BidiStreamingClient[proto.FromNode, proto.ToNode], ttl time.Duration) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	reports := make(chan *proto.FromNode, 1000)
	go func() {
		for {
			m, err := s.Recv()
			if err == nil && len(m.GetWanted().GetLivesJson()) > 0 {
				var answer *proto.FromNode
				if answer, err = l.obey(m.GetWanted().GetLivesJson()); err == nil {
					select {
					case reports <- answer:
					case <-ctx.Done():
					}
				}
			}
			if err != nil {
				cancel(err)
				return
			}
		}
	}()
	pings := time.NewTicker(ttl / 3)
	defer pings.Stop()
	for n := int64(1); ; {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case m := <-reports:
			if err := s.Send(m); err != nil {
				return err
			}
		case <-pings.C:
			if err := s.Send(&proto.FromNode{Kind: &proto.FromNode_Ping{Ping: &proto.Ping{Id: n}}}); err != nil {
				return err
			}
			n++
		}
	}
}

// obey does what lives ask for, in no time, and returns the report of all.
func (l *light) obey(docs [][]byte) (*proto.FromNode, error) {
	lives, err := wire.ToDocuments[records.Life](docs)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	reports := make([]records.Report, len(lives))
	for i := range lives {
		m := &lives[i].Member
		r := records.Report{
			ID: m.ID, Token: m.Token, Node: spec.NodeName(l.name), Session: l.session, Seq: 1,
			Phase: records.PhaseRunning, Ready: true, ReadyOnce: true, At: time.Now(),
		}
		life := spec.LifeID{ID: m.ID, Token: m.Token}
		l.runs[life] = true
		if m.Goal == records.GoalStop {
			delete(l.runs, life)
			r.Seq, r.Phase, r.Ready = 2, records.PhaseStopped, false
		}
		reports[i] = r
	}
	out, err := wire.Documents(reports)
	return &proto.FromNode{Kind: &proto.FromNode_Reports{Reports: &proto.Reports{ReportsJson: out}}}, err
}
