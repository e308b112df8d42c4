package control

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/dispatch"
	"github.com/stead-project/stead/spec"
)

// image is one image as a node tells it.
type image struct {
	Name      string
	Digest    string
	SizeBytes int64
}

// LoadImage implements proto.ControlServer.
func (s nodes) LoadImage(stream proto.Control_LoadImageServer) error {
	first, err := stream.Recv()
	if err != nil {
		return invalid("the first message must name the node")
	}
	node, err := s.oneNode(stream.Context(), first.GetNode())
	if err != nil {
		return err
	}
	t, err := s.cfg.Nodes.Open(stream.Context(), node, &proto.Ask{Kind: &proto.Ask_ImageLoad{ImageLoad: &proto.ImageLoadAsk{}}})
	if err != nil {
		return err
	}
	defer t.Close()
	if err := sendArchive(t, first.GetData(), stream); err != nil {
		return err
	}
	out := &proto.LoadImageResponse{}
	if out.Images, err = readImages(t, node); err != nil {
		return err
	}
	return stream.SendAndClose(out)
}

// sendArchive passes the archive on. A node that is no longer interested has said
// why, or will: that is not judged here.
func sendArchive(t *dispatch.Tunnel, first []byte, stream proto.Control_LoadImageServer) error {
	data := first
	for {
		if len(data) > 0 {
			if t.Send(&proto.Frame{Data: data}) != nil {
				return nil
			}
		}
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			_ = t.Send(&proto.Frame{Done: true}) // as above
			return nil
		}
		if err != nil {
			return err
		}
		data = m.GetData()
	}
}

// answerOf is a node's answer of one frame or more.
func answerOf(t *dispatch.Tunnel, node spec.NodeName) (doc []byte, err error) {
	for {
		f, err := receive(t)
		if errors.Is(err, io.EOF) {
			return doc, nil
		}
		if err != nil {
			return nil, err
		}
		doc = append(doc, f.GetData()...)
		if len(doc) > maxAnswerBytes {
			return nil, internal("the response of node %s is too large", node)
		}
		if f.GetDone() {
			return doc, nil
		}
	}
}

// readImages reads the node's answer: the JSON of its images.
func readImages(t *dispatch.Tunnel, node spec.NodeName) ([]*proto.ImageInfo, error) {
	doc, err := answerOf(t, node)
	if err != nil {
		return nil, err
	}
	var images []image
	if err := json.Unmarshal(doc, &images); err != nil {
		return nil, unavailable("the response of node %s is incomplete", node)
	}
	var out []*proto.ImageInfo
	for _, i := range images {
		out = append(out, &proto.ImageInfo{Node: string(node), Name: i.Name, Digest: i.Digest, SizeBytes: i.SizeBytes})
	}
	return out, nil
}

// maxAnswerBytes bounds what a node may say of its images, or of its containers.
const maxAnswerBytes = 16 << 20

// Images implements proto.ControlServer. Without a node it asks all that have a
// session, and leaves out those that do not answer unless none does.
func (s nodes) Images(ctx context.Context, r *proto.ImagesRequest) (*proto.LoadImageResponse, error) {
	nodes := s.liveNodes()
	if r.GetNode() != "" {
		nodes = []spec.NodeName{spec.NodeName(r.GetNode())}
	}
	out := &proto.LoadImageResponse{}
	var failed error
	answers := 0
	for _, node := range nodes {
		images, err := s.imagesOf(ctx, node)
		if err != nil {
			failed = err
			continue
		}
		answers++
		out.Images = append(out.Images, images...)
	}
	if answers == 0 && failed != nil {
		return nil, failed
	}
	return out, nil
}

func (s nodes) imagesOf(ctx context.Context, node spec.NodeName) ([]*proto.ImageInfo, error) {
	t, err := s.cfg.Nodes.Open(ctx, node, &proto.Ask{Kind: &proto.Ask_Images{Images: &proto.ImagesAsk{}}})
	if err != nil {
		return nil, err
	}
	defer t.Close()
	return readImages(t, node)
}

// oneNode is the node asked for, or the only one; while there is none, the first
// is waited for.
func (s nodes) oneNode(ctx context.Context, name string) (spec.NodeName, error) {
	if name != "" {
		return spec.NodeName(name), nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Nodes.AnswerTime())
	defer cancel()
	sub := s.cfg.Cache.Subscribe()
	defer sub.Close()
	nodes := s.liveNodes()
	for len(nodes) == 0 && ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-sub.C():
			sub.Take()
			nodes = s.liveNodes()
		}
	}
	switch len(nodes) {
	case 1:
		return nodes[0], nil
	case 0:
		return "", unavailable("no node is connected")
	}
	names := make([]string, len(nodes))
	for i, n := range nodes {
		names[i] = string(n)
	}
	return "", invalid("there are several nodes (%s); name one with --node", strings.Join(names, ", "))
}

// liveNodes are the nodes with a session, in order.
func (s nodes) liveNodes() []spec.NodeName {
	var out []spec.NodeName
	s.cfg.Cache.Look(func(v cache.View) {
		for _, n := range v.Nodes() {
			if n.Node != nil && n.Session != nil {
				out = append(out, n.Node.Name)
			}
		}
	})
	return out
}
