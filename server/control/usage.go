package control

import (
	"context"
	"sync"

	"google.golang.org/grpc/status"
	gproto "google.golang.org/protobuf/proto"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/spec"
)

// askedAtOnce bounds the nodes that are asked at a time, each of which takes a second.
const askedAtOnce = 64

// Usage implements proto.ControlServer. A node that does not answer is told with its error.
func (s nodes) Usage(ctx context.Context, r *proto.UsageRequest) (*proto.UsageResponse, error) {
	nodes := s.liveNodes()
	if r.GetNode() != "" {
		nodes = []spec.NodeName{spec.NodeName(r.GetNode())}
	}
	if len(nodes) == 0 {
		return nil, unavailable("no node is connected")
	}
	out := &proto.UsageResponse{Nodes: make([]*proto.NodeUsage, len(nodes))}
	room := make(chan struct{}, askedAtOnce)
	var asking sync.WaitGroup
	for i, node := range nodes {
		room <- struct{}{}
		asking.Go(func() {
			defer func() { <-room }()
			usage, err := s.usageOf(ctx, node, r.GetVolumes())
			if err != nil {
				usage = &proto.NodeUsage{Error: status.Convert(err).Message()}
			}
			usage.Node = string(node)
			out.Nodes[i] = usage
		})
	}
	asking.Wait()
	return out, nil
}

func (s nodes) usageOf(ctx context.Context, node spec.NodeName, volumes bool) (*proto.NodeUsage, error) {
	t, err := s.cfg.Nodes.Open(ctx, node, &proto.Ask{Kind: &proto.Ask_Usage{Usage: &proto.UsageAsk{Volumes: volumes}}})
	if err != nil {
		return nil, err
	}
	defer t.Close()
	doc, err := answerOf(t, node)
	if err != nil {
		return nil, err
	}
	usage := &proto.NodeUsage{}
	if err := gproto.Unmarshal(doc, usage); err != nil || usage.GetHost() == nil && !volumes {
		return nil, unavailable("the response of node %s is incomplete", node)
	}
	return usage, nil
}
