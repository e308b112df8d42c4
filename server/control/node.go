package control

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/fence"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
	"github.com/stead-project/stead/store"
)

// EditNode implements proto.ControlServer. Members that run stay where they are.
func (s nodes) EditNode(ctx context.Context, r *proto.EditNodeRequest) (*proto.EditResponse, error) {
	var taints []spec.Taint
	for _, text := range r.GetTaints() {
		t, err := spec.ParseTaint(text)
		if err != nil {
			return nil, invalid("%s", err.Error())
		}
		taints = append(taints, t)
	}
	for key, value := range r.GetLabels() {
		if _, _, err := scalar.ParseLabel(key + "=" + value); err != nil {
			return nil, invalid("%s", err.Error())
		}
	}
	every := (&records.Node{}).AllLabels()
	for _, key := range append(slices.Sorted(maps.Keys(r.GetLabels())), r.GetDropLabels()...) {
		if _, own := every[key]; own {
			return nil, invalid("label %s is set by the node itself and cannot be changed", key)
		}
	}
	name := spec.NodeName(r.GetName())
	var lives int
	err := editRecord(ctx, s.shared, store.NodeKey(name), "node "+r.GetName(), notFound(proto.KindNode, "", r.GetName()), func(n *records.Node) (bool, error) {
		was := store.Encode(n)
		if r.Cordon != nil {
			n.Cordon = r.GetCordon()
		}
		if r.Cordon != nil && !r.GetCordon() {
			n.Drain = nil
		}
		for key, value := range r.GetLabels() {
			if n.Labels == nil {
				n.Labels = map[string]string{}
			}
			n.Labels[key] = value
		}
		for _, key := range r.GetDropLabels() {
			delete(n.Labels, key)
		}
		n.Taints = retaint(n.Taints, taints, r.GetDropTaints())
		return string(was) != string(store.Encode(n)), nil
	}, nil)
	if err != nil {
		return nil, err
	}
	s.cfg.Cache.Look(func(v cache.View) { lives = len(v.MembersOn(name)) })
	out := &proto.EditResponse{}
	if (r.GetCordon() || len(taints) > 0) && lives > 0 {
		out.Effects = []string{fmt.Sprintf("members that run on it are not affected (%d); those without a volume there start on another node when they are replaced", lives)}
	}
	return out, nil
}

// FenceNode implements proto.ControlServer.
func (s nodes) FenceNode(ctx context.Context, r *proto.FenceNodeRequest) (*proto.EditResponse, error) {
	if !r.GetPoweredOff() {
		return nil, invalid("fence %s: confirm with --i-have-powered-off", r.GetName())
	}
	f, err := fence.Node(ctx, s.cfg.Store, s.cfg.Cache, spec.NodeName(r.GetName()), user(ctx))
	if err != nil {
		return nil, err
	}
	s.cfg.Logger.Warn("node fenced by hand", "node", r.GetName(), "user", f.By, "lives", len(f.Lives))
	out := &proto.EditResponse{}
	for _, l := range f.Lives {
		out.Effects = append(out.Effects, fmt.Sprintf("%s: token %s counts as over", l.ID.MemberName(), l.Token))
	}
	if len(f.Lives) > 0 {
		out.Effects = append(out.Effects, "members without a volume there start on another node; the others wait until the node returns without running lives, or until 'stead volume reclaim VOLUME --lost' says that its disk is gone for good")
	}
	return out, nil
}

// RemoveNode implements proto.ControlServer.
func (s nodes) RemoveNode(ctx context.Context, r *proto.RemoveNodeRequest) (*proto.EditResponse, error) {
	if err := fence.RemoveNode(ctx, s.cfg.Store, s.cfg.Cache, spec.NodeName(r.GetName())); err != nil {
		return nil, err
	}
	s.cfg.Logger.Info("node removed", "node", r.GetName())
	return &proto.EditResponse{}, nil
}

// retaint is now without the dropped ones and with the given ones in their places.
func retaint(now, given []spec.Taint, dropped []string) (out []spec.Taint) {
	for _, t := range now {
		again := slices.ContainsFunc(given, func(g spec.Taint) bool { return g.Key == t.Key && g.Effect == t.Effect })
		if !again && !slices.Contains(dropped, t.Key) && !slices.Contains(dropped, t.Key+":"+t.Effect) {
			out = append(out, t)
		}
	}
	return append(out, given...)
}
