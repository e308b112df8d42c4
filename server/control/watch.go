package control

import (
	"bytes"
	"context"
	"strings"
	"time"

	"github.com/stead-project/stead/proto"
)

// watchGap is the least time between two looks of one watch: what changes
// meanwhile is sent as one.
const watchGap = 50 * time.Millisecond

// Watch implements proto.ControlServer.
func (s *Server) Watch(r *proto.ListRequest, stream proto.Control_WatchServer) error {
	q, err := listQuery(r)
	if err != nil {
		return err
	}
	// Who waits for something must not find it done in a picture from before.
	if err := s.fresh(stream.Context(), q, waitTime); err != nil {
		return err
	}
	sub := s.cfg.Cache.Subscribe() // before the first look, so that no change is missed
	defer sub.Close()
	ctx := stream.Context()
	sent := map[string][]byte{}
	for first := true; ; first = false {
		if err := s.sendChanges(ctx, q, sent, stream); err != nil {
			return err
		}
		if first {
			if err := stream.Send(&proto.WatchEvent{Synced: true}); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-sub.C():
			sub.Take()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(watchGap):
		}
	}
}

// sendChanges sends what differs from sent, and keeps it in step.
func (s *Server) sendChanges(ctx context.Context, q query, sent map[string][]byte, stream proto.Control_WatchServer) error {
	items, err := s.read(ctx, q)
	if err != nil {
		return err
	}
	present := make(map[string]bool, len(items))
	for _, i := range items {
		o, err := i.wire()
		if err != nil {
			return err
		}
		key := o.GetNamespace() + "/" + o.GetName()
		present[key] = true
		if bytes.Equal(sent[key], o.GetJson()) {
			continue
		}
		sent[key] = o.GetJson()
		if err := stream.Send(&proto.WatchEvent{Object: o}); err != nil {
			return err
		}
	}
	for key := range sent {
		if present[key] {
			continue
		}
		delete(sent, key)
		ns, name := cutKey(key)
		gone := &proto.WatchEvent{Gone: true, Object: &proto.Object{Kind: q.kind, Namespace: ns, Name: name}}
		if err := stream.Send(gone); err != nil {
			return err
		}
	}
	return nil
}

// cutKey splits "namespace/name".
func cutKey(key string) (ns, name string) {
	ns, name, _ = strings.Cut(key, "/")
	return ns, name
}
