package e2e

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vishvananda/netns"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
)

// listenInside listens in the lab's network namespace.
func (l *Lab) listenInside(address string) net.Listener {
	l.t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	ours, err := netns.Get()
	if err != nil {
		l.t.Fatal(err)
	}
	defer ours.Close()
	inside, err := netns.GetFromName(l.Name)
	if err != nil {
		l.t.Fatal(err)
	}
	defer inside.Close()
	if err := netns.Set(inside); err != nil {
		l.t.Fatal(err)
	}
	lis, err := net.Listen("tcp", address)
	if back := netns.Set(ours); err != nil || back != nil {
		l.t.Fatal(err, back)
	}
	return lis
}

// spans is a collector that keeps what it is sent, by the name of the program.
type spans struct {
	collector.UnimplementedTraceServiceServer
	mu  sync.Mutex
	all map[string][]*otlp.Span
}

func (s *spans) Export(_ context.Context, m *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, of := range m.GetResourceSpans() {
		program := ""
		for _, a := range of.GetResource().GetAttributes() {
			if a.GetKey() == "service.name" {
				program = a.GetValue().GetStringValue()
			}
		}
		for _, in := range of.GetScopeSpans() {
			s.all[program] = append(s.all[program], in.GetSpans()...)
		}
	}
	return &collector.ExportTraceServiceResponse{}, nil
}

// below are the spans whose parent has that id; of the root of a trace it is empty.
func (s *spans) below(id []byte) (all []*otlp.Span) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, list := range s.all {
		for _, one := range list {
			if string(one.GetParentSpanId()) == string(id) {
				all = append(all, one)
			}
		}
	}
	slices.SortFunc(all, func(a, b *otlp.Span) int {
		return int(int64(a.GetStartTimeUnixNano()) - int64(b.GetStartTimeUnixNano()))
	})
	return all
}

func took(s *otlp.Span) time.Duration {
	return time.Duration(s.GetEndTimeUnixNano() - s.GetStartTimeUnixNano())
}

func names(all []*otlp.Span) (names []string) {
	for _, s := range all {
		names = append(names, s.GetName())
	}
	return names
}

// stages are the spans below the start of a member of the set life, in the order of their begin.
var stages = []string{"decide", "store", "send", "ledger", "volumes", "image", "sandbox", "network", "files", "create", "start container", "become ready", "report", "names"}

// An apply is one tree of spans, from the command to the names that lead to its members, with times that add up. Without the
// flag nothing is sent or stored, and a collector that hangs delays nothing.
func TestAnApplyIsOneTraceUntilItsMembersAreReady(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.storeFlags = nil
	got, g := &spans{all: map[string][]*otlp.Span{}}, grpc.NewServer()
	collector.RegisterTraceServiceServer(g, got)
	lis := l.listenInside("127.0.0.1:4317")
	served := make(chan struct{})
	go func() { defer close(served); _ = g.Serve(lis) }()
	stop := sync.OnceFunc(func() { g.Stop(); <-served })
	t.Cleanup(stop)
	ofSet := func(set string) string {
		return strings.NewReplacer("name: life", "name: "+set, "app: life", "app: "+set, "serviceName: life", "serviceName: "+set).Replace(lifeSet)
	}

	t.Log("off")
	l.startAll(l.toolArchive())
	l.apply("untraced", ofSet("untraced"), "--wait", "--timeout", patience)
	kept, _ := l.dump()
	for key, kv := range kept {
		if strings.Contains(string(kv.Value), `"trace"`) {
			t.Errorf("%s is %s", key, kv.Value)
		}
	}
	end(t, l.agent)
	end(t, l.server)
	if len(got.all) > 0 {
		t.Errorf("without the flag it sends %v", got.all)
	}

	t.Log("on")
	flags := []string{"--trace-endpoint", "http://127.0.0.1:4317"}
	l.startServer(flags...)
	l.startAgent(flags...)
	l.apply("traced", ofSet("traced"), "--wait", "--timeout", patience)
	var apply *otlp.Span
	var starts []*otlp.Span
	l.eventually(time.Minute, "the whole tree is there", func() error {
		roots := got.below(nil)
		if len(roots) != 1 || roots[0].GetName() != "apply" {
			return fmt.Errorf("roots are %v", names(roots))
		}
		apply = roots[0]
		starts = got.below(apply.GetSpanId())
		if want := []string{"start traced-0", "start traced-1", "start traced-2"}; !slices.Equal(names(starts), want) {
			return fmt.Errorf("below the apply are %v", names(starts))
		}
		for _, s := range starts {
			have := names(got.below(s.GetSpanId()))
			for _, stage := range stages {
				if !slices.Contains(have, stage) {
					return fmt.Errorf("below %s are %v; %s is missing", s.GetName(), have, stage)
				}
			}
		}
		return nil
	})
	const blur = 50 * time.Millisecond // two reads of the clock
	for _, s := range starts {
		var known time.Duration // of which it is told where it went
		until, text := s.GetStartTimeUnixNano(), ""
		for _, stage := range got.below(s.GetSpanId()) {
			text += fmt.Sprintf(" %s %v", stage.GetName(), took(stage).Round(100*time.Microsecond))
			if string(stage.GetTraceId()) != string(apply.GetTraceId()) {
				t.Errorf("%s of %s is of another trace", stage.GetName(), s.GetName())
			}
			if stage.GetName() == "names" {
				continue // it is answered when all is over
			}
			if end := stage.GetEndTimeUnixNano(); end > until { // some overlap
				known += time.Duration(end - max(until, stage.GetStartTimeUnixNano()))
				until = end
			}
			if stage.GetStartTimeUnixNano()+uint64(blur) < s.GetStartTimeUnixNano() || stage.GetEndTimeUnixNano() > s.GetEndTimeUnixNano()+uint64(blur) {
				t.Errorf("%s is not within %s", stage.GetName(), s.GetName())
			}
		}
		t.Logf("%s took %v:%s", s.GetName(), took(s).Round(100*time.Microsecond), text)
		if known > took(s)+blur || known < took(s)/2 {
			t.Errorf("the stages of %s took %v, and all of it %v", s.GetName(), known, took(s))
		}
	}

	t.Log("the collector hangs")
	stop()
	hangs := l.listenInside("127.0.0.1:4317") // nobody accepts
	defer hangs.Close()
	l.apply("hangs", ofSet("hangs"), "--wait", "--timeout", patience)
	l.agent.waitSaid(l, "traces not sent")
	began := time.Now()
	end(t, l.agent)
	end(t, l.server)
	t.Logf("they ended within %v", time.Since(began).Round(time.Millisecond))
}
