package sim

import (
	"context"
	"encoding/json"
	"io/fs"
	"log/slog"

	"github.com/stead-project/stead/agent/session"
	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/spec"
)

// home is what a node's disk says of who it is.
type home struct{ n *node }

var _ session.Home = home{}

func (h home) Name() spec.NodeName { return h.n.name }

func (h home) UID() spec.UID { return h.n.uid }

func (h home) Cluster() string { return clusterID }

func (h home) Belong(*proto.Welcome) error { return nil }

func (h home) Newest() spec.Sequence { return h.n.newest }

func (h home) KeepNewest(seq spec.Sequence) error {
	return h.n.act(spec.Identity{}, "KeepNewest", func() error { h.n.newest = seq; return nil })
}

// documents are small files, each there whole or not at all.
type documents map[string][]byte

var _ session.Dir = documents{}

// Get implements session.Dir.
func (d documents) Get(name string, doc any) error {
	b, ok := d[name]
	if !ok {
		return fs.ErrNotExist
	}
	return json.Unmarshal(b, doc)
}

// Put implements session.Dir.
func (d documents) Put(name string, doc any) (err error) {
	d[name], err = json.Marshal(doc)
	return err
}

// refusals hears what an agent logs, and judges that it was sent nothing that it must refuse.
type refusals struct{ n *node }

func (r refusals) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelError }

func (r refusals) Handle(_ context.Context, m slog.Record) error {
	switch m.Message {
	case "assignment not decoded; ignored", "assignment for another node ignored", "volume orders not decoded; ignored":
		r.n.w.fail("dispatch", "%s is sent what it cannot take: %s", r.n.name, m.Message)
	}
	return nil
}

func (r refusals) WithAttrs([]slog.Attr) slog.Handler { return r }

func (r refusals) WithGroup(string) slog.Handler { return r }
