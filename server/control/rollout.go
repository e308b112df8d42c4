package control

import (
	"context"
	"math"
	"time"

	"github.com/stead-project/stead/manifest"
	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// Scale implements proto.ControlServer.
func (s sets) Scale(ctx context.Context, r *proto.ScaleRequest) (*proto.ScaleResponse, error) {
	if n := r.GetReplicas(); n < 0 || n > spec.MaxReplicas {
		return nil, invalid("replicas must be 0 to %d (got %d)", spec.MaxReplicas, n)
	}
	ref := spec.SetRef{Namespace: namespace(r.GetNamespace()), Name: spec.SetName(r.GetName())}
	out := &proto.ScaleResponse{After: r.GetReplicas()}
	err := s.editCounted(ctx, ref, func(set *records.Set) (bool, error) {
		if err := editable(set); err != nil {
			return false, err
		}
		if set.Spec.Ordinals.Range(int(r.GetReplicas())).End > math.MaxInt32 {
			return false, invalid("%d replicas from ordinal %d on exceed the largest ordinal", r.GetReplicas(), set.Start())
		}
		now := set.Replicas()
		if r.CurrentReplicas != nil && int(r.GetCurrentReplicas()) != now {
			return false, precondition(
				"set %s has %d members, not %d; nothing was changed", ref, now, r.GetCurrentReplicas())
		}
		out.Before, out.Effects = int32(now), nil
		if now == int(r.GetReplicas()) && (set.SkipDecommission || !r.GetSkipDecommission()) {
			return false, nil
		}
		old := spec.Clone(*set)
		replicas := r.GetReplicas()
		set.Spec.Replicas = &replicas
		settleInitial(set)
		settleSkip(set, &old)
		set.SkipDecommission = set.SkipDecommission || r.GetSkipDecommission()
		set.Generation++
		edited(ctx, set, &old, "scale")
		out.Effects = describe(&old, s.forecast(set))
		return true, nil
	})
	return out, err
}

// Undo implements proto.ControlServer.
func (s sets) Undo(ctx context.Context, r *proto.UndoRequest) (*proto.EditResponse, error) {
	ref := spec.SetRef{Namespace: namespace(r.GetNamespace()), Name: spec.SetName(r.GetName())}
	if r.GetToRevision() < 0 {
		return nil, invalid("invalid revision %d", r.GetToRevision())
	}
	return s.retemplate(ctx, ref, "undo", func(set *records.Set, w plan.World) error {
		stored := w.Revisions
		now, restarted := set.RevisionHash(stored), set.RestartedAt
		for n := len(stored) - 1; n >= 0; n-- { // ascending by number
			if to := stored[n]; to.Number == r.GetToRevision() || r.GetToRevision() == 0 && to.Hash != now {
				if name := to.Template.MountsWithout(&set.Spec); name != "" {
					return precondition("revision %d mounts %q, which is neither a volume of its own nor a claim of set %s any more", to.Number, name, ref)
				}
				if wrong := manifest.HostProblems(&to.Template, s.cfg.Host); len(wrong) > 0 {
					return precondition("revision %d of set %s: %s", to.Number, ref, wrong[0])
				}
				set.SetRevision(to)
				if plan.Former(set, w.Status, w.Slots) != "" { // members must run anew all the same
					set.RestartedAt = restarted
				}
				return nil
			}
		}
		if r.GetToRevision() == 0 {
			return precondition("set %s has no earlier revision", ref)
		}
		return absent("set %s has no revision %d; see 'stead rollout history %s'", ref, r.GetToRevision(), ref.Name)
	})
}

// Pause implements proto.ControlServer.
func (s sets) Pause(ctx context.Context, r *proto.PauseRequest) (*proto.EditResponse, error) {
	ref := spec.SetRef{Namespace: namespace(r.GetNamespace()), Name: spec.SetName(r.GetName())}
	out := &proto.EditResponse{}
	err := s.editSet(ctx, ref, func(set *records.Set) (bool, error) {
		if err := editable(set); err != nil {
			return false, err
		}
		changed := set.Paused != r.GetPaused()
		set.Paused = r.GetPaused()
		if changed {
			set.Generation++
			edited(ctx, set, set, map[bool]string{true: "pause", false: "resume"}[set.Paused])
		}
		if !set.Paused {
			out.Effects = describe(set, s.forecast(set))
		}
		return changed, nil
	})
	return out, err
}

// Restart implements proto.ControlServer.
func (s sets) Restart(ctx context.Context, r *proto.RestartRequest) (*proto.EditResponse, error) {
	ref := spec.SetRef{Namespace: namespace(r.GetNamespace()), Name: spec.SetName(r.GetSet())}
	if (r.GetSet() == "") == (r.GetMember() == "") {
		return nil, invalid("name the set or the member to restart")
	}
	if r.GetMember() != "" {
		return s.restartMember(ctx, ref.Namespace, r.GetMember(), r.GetNow())
	}
	return s.retemplate(ctx, ref, "restart", func(set *records.Set, _ plan.World) error {
		set.RestartedAt = time.Now().UTC().Format(time.RFC3339Nano)
		return nil
	})
}

// retemplate changes what the members of a set run, and tells whom it restarts.
func (s sets) retemplate(ctx context.Context, ref spec.SetRef, verb string, change func(*records.Set, plan.World) error) (*proto.EditResponse, error) {
	out := &proto.EditResponse{}
	edit := s.editSet
	if verb == "undo" { // a restart asks for nothing
		edit = s.editCounted
	}
	err := edit(ctx, ref, func(set *records.Set) (bool, error) {
		if err := editable(set); err != nil {
			return false, err
		}
		before, old := hashOf(set), spec.Clone(*set)
		if err := change(set, s.world(ref, nil)); err != nil {
			return false, err
		}
		set.Generation++
		edited(ctx, set, &old, verb)
		out.Effects = describe(&old, s.forecast(set))
		out.Unchanged = before == hashOf(set)
		return !out.Unchanged, nil
	})
	return out, err
}

// hashOf names what the members of a set are to run.
func hashOf(set *records.Set) spec.RevisionHash {
	return set.Spec.Members.Hash(set.Template())
}

// restartMember asks for the restart of one life. The engine answers it; a request
// for a life that is over by then is void. now: whoever is busy.
func (s sets) restartMember(ctx context.Context, ns spec.Namespace, member string, now bool) (*proto.EditResponse, error) {
	set, ordinal, err := spec.ParseMemberName(member)
	if err != nil {
		return nil, invalid("%v", err)
	}
	id := spec.Identity{Namespace: ns, Set: set, Ordinal: ordinal}
	var of *records.Set
	var life *records.Member
	var guards []store.Compare
	s.cfg.Cache.Look(func(v cache.View) {
		of = v.Set(id.Ref())
		life = v.Member(id)
		guards = []store.Compare{v.Seen(store.SetKey(id.Ref())), v.Seen(store.MemberKey(id)), v.Seen(store.RequestKey(id))}
	})
	if of != nil {
		if err := editable(of); err != nil {
			return nil, err
		}
	}
	switch {
	case life == nil:
		return nil, precondition("%s has no life to restart; see 'stead explain %s'", member, member)
	case life.Goal == records.GoalStop:
		return nil, precondition("%s is stopping already (%s)", member, life.StopReason)
	}
	request := records.Request{ID: id, Token: life.Token, Now: now, At: time.Now().UTC()}
	ahead := s.world(id.Ref(), nil)
	if slot := slotOf(ahead.Slots, id); slot != nil {
		slot.Request = &request
	}
	err = s.commit(ctx, "member "+member, store.Txn{If: guards, Then: []store.Op{store.Put(store.RequestKey(id), store.Encode(request))}})
	if err != nil {
		return nil, err
	}
	return &proto.EditResponse{Effects: describeRestart(plan.Next(ahead), id)}, nil
}
