package dispatch

import (
	"encoding/json"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/proto/wire"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// joinRequest is a hello, decoded.
type joinRequest struct {
	machine
	boot    spec.BootID
	cluster string
	facts   records.NodeFacts
	holding map[spec.LifeID]bool
	known   records.Known // the highest that any message said
	resumed bool          // see records.Session
	gap     string        // why the store is not the continuation of what it knows; "": it is
}

func decodeJoinRequest(h *proto.Hello) (joinRequest, error) {
	req := joinRequest{
		machine: machine{spec.NodeName(h.GetNode()), spec.UID(h.GetUid())}, boot: spec.BootID(h.GetBoot()),
		cluster: h.GetCluster(), holding: holdings(h.GetInventory()),
		known: wire.ToKnown(h.GetKnown()).Add(records.Known{At: wire.ToSequence(h.GetNewest())}),
	}
	if req.node == "" || req.uid == "" || req.boot == "" {
		return req, status.Error(codes.InvalidArgument, "hello must name node, uid and boot")
	}
	if why := overLimit(h.GetInventory(), h.GetFactsJson()); why != "" {
		return req, status.Errorf(codes.ResourceExhausted, "hello of node %s is refused: %s", req.node, why)
	}
	if err := json.Unmarshal(h.GetFactsJson(), &req.facts); err != nil {
		return req, status.Errorf(codes.InvalidArgument, "hello of node %s: decode facts: %v", req.node, err)
	}
	req.facts.Name, req.facts.UID, req.facts.Boot = req.node, req.uid, req.boot
	return req, nil
}

func holdings(i *proto.Inventory) map[spec.LifeID]bool {
	holds := make(map[spec.LifeID]bool, len(i.GetHoldings()))
	for _, h := range i.GetHoldings() {
		holds[spec.LifeID{ID: wire.ToIdentity(h.GetId()), Token: wire.ToToken(h.GetToken())}] = true
	}
	return holds
}
