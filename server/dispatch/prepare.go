package dispatch

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	"google.golang.org/grpc/codes"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/proto/wire"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
	"github.com/stead-project/stead/spec/scalar"
)

// preparedBytes bounds what a node says of each preparation.
const preparedBytes = 512

// nextPreparations takes up what became of the preparations of sets with a member on the machine, and reports whether they
// are others than those that were sent.
func (s *sentState) nextPreparations(v cache.View, ch *cache.NodeChanges) (moved bool) {
	look := func(ref spec.SetRef) { moved = s.movePreparation(ref, s.preparationOf(v, ref)) || moved }
	for ref := range ch.Sets {
		look(ref)
	}
	for id := range ch.Members {
		if _, sent := s.preparations[id.Ref()]; sent != v.On(s.node).HasMemberOf(id.Ref()) {
			look(id.Ref())
		}
	}
	if ch.All {
		for ref := range s.preparations {
			look(ref)
		}
		for _, ref := range v.On(s.node).Sets() {
			look(ref)
		}
	}
	return moved
}

// preparationOf is what the machine is to have for an update of a set; nil: nothing.
func (s *sentState) preparationOf(v cache.View, ref spec.SetRef) *records.Preparation {
	st, hash := v.Status(ref), v.TemplateHash(ref)
	if st == nil || st.CurrentRevision == hash || !v.On(s.node).HasMemberOf(ref) { // mostly
		return nil
	}
	return plan.Prepare(v.Set(ref), st, hash, func(h spec.RevisionHash) *records.Revision { return v.Revision(ref, h) })
}

// movePreparation takes over the one of a set; nil: there is none.
func (s *sentState) movePreparation(ref spec.SetRef, now *records.Preparation) (moved bool) {
	old := s.preparations[ref]
	if old == nil && now == nil || old != nil && now != nil && old.Revision == now.Revision && slices.Equal(old.Images, now.Images) {
		return false
	}
	for _, r := range secretsOfPreparation(old) {
		s.named[r]--
		if s.named[r] == 0 {
			delete(s.named, r)
		}
	}
	for _, r := range secretsOfPreparation(now) {
		s.named[r]++
	}
	s.livesMoved = true // its Secrets are files that the node is sent
	delete(s.preparations, ref)
	if now != nil {
		s.preparations[ref] = now
	}
	return true
}

func secretsOfPreparation(p *records.Preparation) []FileRef {
	if p == nil {
		return nil
	}
	return PullSecretsOf(p.Ref.Namespace, &spec.Template{Spec: spec.MemberSpec{ImagePullSecrets: p.PullSecrets}})
}

// preparationsMessage is all that the node is to have.
func (s *sentState) preparationsMessage() (*proto.Preparations, error) {
	all := make([]records.Preparation, 0, len(s.preparations))
	for _, ref := range slices.SortedFunc(maps.Keys(s.preparations), spec.SetRef.Compare) {
		all = append(all, *s.preparations[ref])
	}
	docs, err := wire.Documents(all)
	return &proto.Preparations{PreparationsJson: docs}, err
}

// sanePrepared is what a node said of preparations, in order, each once, and safe to show. What is done comes first
// where there is too much, so that it is never left out for what is not.
func sanePrepared(said []records.Prepared) []records.Prepared {
	out := slices.DeleteFunc(slices.Clone(said), func(p records.Prepared) bool {
		return !scalar.ValidLabel(string(p.Ref.Namespace)) || !scalar.ValidLabel(string(p.Ref.Name)) || len(p.Revision) > wordBytes ||
			!p.Done && p.Cause != causes.ImagePull && p.Cause != causes.ImageMissing
	})
	for i := range out {
		p := &out[i]
		if p.Done {
			p.Cause, p.Message = "", ""
		}
		sanitize(&p.Message, preparedBytes)
	}
	slices.SortStableFunc(out, func(a, b records.Prepared) int { return cmp.Or(doneFirst(a, b), a.Compare(b)) })
	out = slices.Clip(out[:min(len(out), records.MaxPreparations)])
	slices.SortStableFunc(out, records.Prepared.Compare)
	return slices.CompactFunc(out, func(a, b records.Prepared) bool { return a.Compare(b) == 0 })
}

func doneFirst(a, b records.Prepared) int {
	switch {
	case a.Done == b.Done:
		return 0
	case a.Done:
		return -1
	}
	return 1
}

// receivePrepared takes what the node says of preparations now. It does not block.
func (se *session) receivePrepared(m *proto.Prepared) {
	var said []records.Prepared
	if len(m.GetPreparedJson()) > factsBytes {
		se.abortOverLimit(LimitHello, "what it says of preparations is too long")
		return
	}
	if err := json.Unmarshal(m.GetPreparedJson(), &said); err != nil {
		se.abort(codes.InvalidArgument, "decode what is prepared: "+err.Error())
		return
	}
	se.mu.Lock()
	se.prepared, se.changed = sanePrepared(said), true
	se.mu.Unlock()
	se.out.filled.Notify()
}

// nextPrepared is what is to be stored of what the node says of preparations.
func (se *session) nextPrepared() []records.Prepared {
	se.mu.Lock()
	defer se.mu.Unlock()
	return se.prepared
}
