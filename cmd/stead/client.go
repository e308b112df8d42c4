package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/server"
	"github.com/stead-project/stead/spec"
)

// callTimeout bounds every unary call of the command line.
const callTimeout = 30 * time.Second

// cli is what all verbs of people share.
type cli struct {
	server    string
	namespace string
}

func serverDefault() string {
	if s := os.Getenv("STEAD_SERVER"); s != "" {
		return s
	}
	return "unix://" + server.DefaultSocket
}

// dial connects to the server; only unix sockets, until there is TLS.
func dial(address string) (*grpc.ClientConn, error) {
	socket, ok := strings.CutPrefix(address, "unix://")
	if !ok {
		return nil, usageError{fmt.Errorf("--server %q: only unix:///path is supported yet", address)}
	}
	return server.Dial(socket)
}

// with calls f with a connected client.
func (c *cli) with(f func(proto.ControlClient) error) error {
	conn, err := dial(c.server)
	if err != nil {
		return err
	}
	defer conn.Close()
	err = f(proto.NewControlClient(conn))
	if status.Code(err) == codes.Unavailable && strings.Contains(err.Error(), "connect") {
		return fmt.Errorf("no server answers at %s; start one with 'stead dev', or name another with --server", c.server)
	}
	return err
}

// call bounds one unary call.
func call(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, callTimeout)
}

// explainError is an error in the words of people: a status without its code.
func explainError(err error) string {
	if s, ok := status.FromError(err); ok && s.Code() != codes.Unknown {
		if s.Code() == codes.DeadlineExceeded {
			return "the server did not answer in time; is it healthy? see 'stead version'"
		}
		return s.Message()
	}
	return err.Error()
}

// object is the manifest shape in which the server sends every kind.
type object struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Metadata   objectMeta      `json:"metadata"`
	Spec       json.RawMessage `json:"spec,omitempty"`
	Status     json.RawMessage `json:"status,omitempty"`
}

type objectMeta struct {
	Name              string            `json:"name"`
	Namespace         string            `json:"namespace"`
	Labels            map[string]string `json:"labels,omitempty"`
	UID               string            `json:"uid,omitempty"`
	Generation        int64             `json:"generation,omitempty"`
	CreationTimestamp time.Time         `json:"creationTimestamp,omitzero"`
}

// decode reads an object and its spec and status into the given records (nil: skip).
func decode(o *proto.Object, spec, status any) (object, error) {
	var out object
	if err := json.Unmarshal(o.GetJson(), &out); err != nil {
		return out, fmt.Errorf("read %s %s: %w", o.GetKind(), o.GetName(), err)
	}
	for _, part := range []struct {
		raw  json.RawMessage
		into any
	}{{out.Spec, spec}, {out.Status, status}} {
		if part.into == nil || len(part.raw) == 0 {
			continue
		}
		if err := json.Unmarshal(part.raw, part.into); err != nil {
			return out, fmt.Errorf("read %s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	return out, nil
}

// setStatus is what the server shows of a set beside its spec.
type setStatus struct {
	spec.SetStatus
	Paused   bool        `json:"paused"`
	Deleting bool        `json:"deleting"`
	Orphaned bool        `json:"orphaned"`
	Edits    []spec.Edit `json:"edits"`
}

// userName is for whom this runs: whoever called sudo, else the user.
func userName() string {
	for _, name := range []string{os.Getenv("SUDO_USER"), os.Getenv("USER"), os.Getenv("LOGNAME")} {
		if name != "" {
			return name
		}
	}
	return ""
}
