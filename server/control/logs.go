package control

import (
	"errors"
	"io"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/proto/wire"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/dispatch"
	"github.com/stead-project/stead/spec"
)

// Logs implements proto.ControlServer.
func (s nodes) Logs(r *proto.LogsRequest, stream proto.Control_LogsServer) error {
	id, node, container, err := s.container(r.GetNamespace(), r.GetMember(), r.GetContainer())
	if err != nil {
		return err
	}
	t, err := s.cfg.Nodes.Open(stream.Context(), node, &proto.Ask{Kind: &proto.Ask_Logs{Logs: &proto.LogsAsk{
		Member: wire.Identity(id), Container: container, Follow: r.GetFollow(), Tail: r.GetTail(),
		Previous: r.GetPrevious(), SinceUnixNanos: r.GetSinceUnixNanos(), Timestamps: r.GetTimestamps(),
	}}})
	if err != nil {
		return err
	}
	defer t.Close()
	return pass(t, stream.Send, nil)
}

// pass sends the node's frames on up to the last one; ended is returned if the tunnel ends
// before that.
func pass(t *dispatch.Tunnel, send func(*proto.Frame) error, ended error) error {
	for {
		f, err := receive(t)
		if errors.Is(err, io.EOF) {
			return ended
		}
		if err != nil {
			return err
		}
		f.Ask = "" // a name between server and node
		if err := send(f); err != nil || f.GetDone() {
			return err
		}
	}
}

// receive returns the node's next frame; an error that the node reports becomes one
// with its code.
func receive(t *dispatch.Tunnel) (*proto.Frame, error) {
	f, err := t.Recv()
	if err != nil {
		return nil, err
	}
	if f.GetError() != "" {
		code := codes.Code(f.GetCode())
		if code == codes.OK {
			code = codes.Unknown
		}
		return nil, status.Error(code, f.GetError())
	}
	return f, nil
}

// container finds the node of a member, and the container of a request; "" is the
// only or first one.
func (s nodes) container(inNamespace, member, name string) (id spec.Identity, node spec.NodeName, container string, err error) {
	ns := namespace(inNamespace)
	set, ordinal, err := spec.ParseMemberName(member)
	if err != nil {
		return id, "", "", invalid("%s", err.Error())
	}
	id = spec.Identity{Namespace: ns, Set: set, Ordinal: ordinal}
	var names []string
	s.cfg.Cache.Look(func(v cache.View) {
		m := v.Member(id)
		if m == nil {
			return
		}
		node = m.Node
		if rev := v.Revision(id.Ref(), m.Revision); rev != nil {
			names = containerNames(&rev.Template.Spec)
		}
	})
	switch {
	case node == "":
		return id, "", "", notFound(proto.KindMember, ns, member)
	case name == "" && len(names) > 0:
		return id, node, names[0], nil
	}
	if slices.Contains(names, name) {
		return id, node, name, nil
	}
	return id, "", "", absent("%s has no container %q; it has %s",
		member, name, strings.Join(names, ", "))
}

// containerNames are those of the containers, then of the sidecars and init containers: the first
// is the one that is meant by none.
func containerNames(s *spec.MemberSpec) (names []string) {
	for i := range s.Containers {
		names = append(names, s.Containers[i].Name)
	}
	for i := range s.InitContainers {
		names = append(names, s.InitContainers[i].Name)
	}
	return names
}

// Exec implements proto.ControlServer. It passes frames on both ways; that the person
// goes away ends the tunnel, and so the command.
func (s nodes) Exec(stream proto.Control_ExecServer) error {
	first, err := stream.Recv()
	if err != nil || first.GetStart() == nil {
		return invalid("the first message must name the command to run")
	}
	r := first.GetStart()
	if len(r.GetCommand()) == 0 {
		return invalid("name a command to run")
	}
	id, node, container, err := s.container(r.GetNamespace(), r.GetMember(), r.GetContainer())
	if err != nil {
		return err
	}
	t, err := s.cfg.Nodes.Open(stream.Context(), node, &proto.Ask{Kind: &proto.Ask_Exec{Exec: &proto.ExecAsk{
		Member: wire.Identity(id), Container: container, Command: r.GetCommand(),
		Stdin: r.GetStdin(), Terminal: r.GetTerminal(),
	}}})
	if err != nil {
		return err
	}
	defer t.Close()
	go passInput(func() (*proto.Frame, error) { // ends with the stream, which ends when we return
		m, err := stream.Recv()
		return m.GetFrame(), err
	}, t)
	return pass(t, stream.Send, unavailable("the connection to node %s was lost; the exit code of the command is unknown", node))
}

// passInput gives the person's frames to the node until either side ends.
func passInput(recv func() (*proto.Frame, error), t *dispatch.Tunnel) {
	for {
		f, err := recv()
		if err != nil || f == nil || t.Send(f) != nil {
			return
		}
	}
}
