package control

import (
	"errors"
	"io"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/proto/wire"
	"github.com/stead-project/stead/server/dispatch"
)

// Exec implements proto.ControlServer. It passes frames on both ways; that the person
// goes away ends the tunnel, and so the command.
func (s *Server) Exec(stream proto.Control_ExecServer) error {
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
	go passInput(stream, t) // ends with the stream, which ends when we return
	for {
		f, err := receive(t)
		if errors.Is(err, io.EOF) {
			return unavailable("the connection to node %s was lost; the exit code of the command is unknown", node)
		}
		if err != nil {
			return err
		}
		f.Ask = "" // a name between server and node
		if err := stream.Send(f); err != nil || f.GetDone() {
			return err
		}
	}
}

// passInput gives the person's frames to the node until either side ends.
func passInput(stream proto.Control_ExecServer, t *dispatch.Tunnel) {
	for {
		m, err := stream.Recv()
		if err != nil || m.GetFrame() == nil || t.Send(m.GetFrame()) != nil {
			return
		}
	}
}
