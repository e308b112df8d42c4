package session

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/stead-project/stead/agent/home"
	"github.com/stead-project/stead/internal/backoff"
	"github.com/stead-project/stead/internal/trouble"
	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// The waits between two attempts to join, doubling: a server that was started
// together with the agent is there in a moment.
const (
	joinFirst = 10 * time.Millisecond
	joinMost  = 500 * time.Millisecond
)

// Join learns from a server which cluster the node belongs to, once: the names of
// everything on the host carry the cluster's id. It returns at once when that is
// known; otherwise it tries until a server welcomes the node or ctx ends, and says
// in the log what it waits for.
func Join(ctx context.Context, h *home.Home, dial Dial, boot spec.BootID, facts records.NodeFacts, log *slog.Logger) error {
	facts.Name, facts.UID, facts.Boot = h.Name(), h.UID(), boot
	if h.Cluster() != "" {
		return nil
	}
	return insist(ctx, log.With("node", string(h.Name())), func() (bool, error) {
		return false, askToJoin(ctx, h, dial, boot, facts)
	})
}

// insist tries to join until that succeeds, is refused for good, or ctx ends, and logs what
// it waits for.
func insist(ctx context.Context, log *slog.Logger, try func() (refused bool, err error)) error {
	var last trouble.Last
	for failures := 1; ; failures++ {
		refused, err := try()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("join a cluster: %w", context.Cause(ctx))
		case refused:
			return fmt.Errorf("join a cluster: %s", plain(err))
		case last.Is(plain(err)):
			log.Warn("not joined yet", "err", plain(err))
		}
		backoff.Sleep(ctx, backoff.After(joinFirst, joinMost, failures))
	}
}

// askToJoin asks one server, once.
func askToJoin(ctx context.Context, h *home.Home, dial Dial, boot spec.BootID, facts records.NodeFacts) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	conn, err := dial(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	doc, err := json.Marshal(facts)
	if err != nil {
		return fmt.Errorf("encode the node's facts: %w", err)
	}
	welcome, err := proto.NewNodesClient(conn).Join(ctx, &proto.Hello{
		Node: string(h.Name()), Uid: string(h.UID()), Boot: string(boot), FactsJson: doc, Inventory: &proto.Inventory{},
	})
	if err != nil {
		return err
	}
	return h.Belong(welcome)
}
