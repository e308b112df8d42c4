package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/spec"
)

// waitSet blocks until the set is as its spec says, printing each change of what
// its members do and wait for. errNotInTime when ctx's deadline passes first.
func waitSet(ctx context.Context, control proto.ControlClient, ref spec.SetRef, out io.Writer) error {
	began := time.Now()
	said := map[string]string{}
	err := watchSet(ctx, control, ref, func(o object, s *spec.SetSpec, st *spec.SetStatus) (bool, error) {
		for _, m := range st.Members {
			if line := memberState(m); said[m.Name] != line {
				said[m.Name] = line
				fmt.Fprintf(out, "%6s  %s  %s\n", elapsed(began), m.Name, line)
			}
		}
		return settled(o, s, st), nil
	})
	switch {
	case err == nil:
		fmt.Fprintf(out, "%6s  %s is available\n", elapsed(began), ref)
		return nil
	case errors.Is(err, errSetGone):
		return fmt.Errorf("set %s was deleted while waiting for it", ref)
	}
	return err
}

// waitGone blocks until the set no longer exists.
func waitGone(ctx context.Context, control proto.ControlClient, ref spec.SetRef, out io.Writer) error {
	began := time.Now()
	said := map[string]string{}
	err := watchSet(ctx, control, ref, func(_ object, _ *spec.SetSpec, st *spec.SetStatus) (bool, error) {
		for _, m := range st.Members {
			if line := memberState(m); said[m.Name] != line {
				said[m.Name] = line
				fmt.Fprintf(out, "%6s  %s  %s\n", elapsed(began), m.Name, line)
			}
		}
		return false, nil
	})
	if errors.Is(err, errSetGone) {
		fmt.Fprintf(out, "%6s  %s is gone\n", elapsed(began), ref)
		return nil
	}
	return err
}

func elapsed(since time.Time) string {
	return fmt.Sprintf("%.1fs", time.Since(since).Seconds())
}

// settled reports whether everything the spec asks for has been reached.
func settled(o object, s *spec.SetSpec, st *spec.SetStatus) bool {
	want := 0
	if s.Replicas != nil {
		want = int(*s.Replicas)
	}
	return st.ObservedGeneration >= o.Metadata.Generation &&
		st.Replicas == want && st.AvailableReplicas == want && st.TerminatingReplicas == 0
}

// memberState is one member in one line: what it is, or what it waits for.
func memberState(m spec.MemberStatus) string {
	switch {
	case m.Ready && m.Goal != spec.GoalStop:
		return fmt.Sprintf("ready on %s at %s", m.Node, m.Address)
	case m.Cause != "":
		return fmt.Sprintf("%s: %s: %s", m.Phase, m.Cause, m.Message)
	case m.Blocked != "":
		return "waits: " + m.Blocked
	case m.Goal == spec.GoalStop:
		return "stopping"
	case m.Phase == "":
		return "waits"
	}
	return "not ready yet (" + string(m.Phase) + ")"
}

var errSetGone = errors.New("set is gone")

// watchSet calls see with every picture of the set until it says done. errSetGone
// when the set does not exist (any more). A lost server is waited for.
func watchSet(ctx context.Context, control proto.ControlClient, ref spec.SetRef,
	see func(object, *spec.SetSpec, *spec.SetStatus) (bool, error)) error {
	for {
		err := watchSetOnce(ctx, control, ref, see)
		if ctx.Err() != nil {
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return fmt.Errorf("wait for %s: %w; see 'stead describe set %s -n %s'", ref, errNotInTime, ref.Name, ref.Namespace)
			}
			return ctx.Err()
		}
		if status.Code(err) != codes.Unavailable {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(500 * time.Millisecond):
		}
	}
}

func watchSetOnce(ctx context.Context, control proto.ControlClient, ref spec.SetRef,
	see func(object, *spec.SetSpec, *spec.SetStatus) (bool, error)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := control.Watch(ctx, &proto.ListRequest{Kind: "set", Namespace: string(ref.Namespace), Set: string(ref.Name)})
	if err != nil {
		return err
	}
	found := false
	for {
		ev, err := stream.Recv()
		if err != nil {
			return err
		}
		if ev.GetSynced() {
			if !found {
				return errSetGone
			}
			continue
		}
		if ev.GetObject().GetName() != string(ref.Name) {
			continue
		}
		if ev.GetGone() {
			return errSetGone
		}
		found = true
		var s spec.SetSpec
		var st spec.SetStatus
		o, err := decode(ev.GetObject(), &s, &st)
		if err != nil {
			return err
		}
		if done, err := see(o, &s, &st); done || err != nil {
			return err
		}
	}
}
