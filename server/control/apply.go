package control

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"strings"
	"time"

	"github.com/stead-project/stead/internal/trace"
	"github.com/stead-project/stead/manifest"
	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// maxObjectBytes bounds one object as it is stored.
const maxObjectBytes = 1 << 20

// Apply implements proto.ControlServer: one transaction for all objects of the
// request, guarded by each of them as it was read.
func (s objects) Apply(ctx context.Context, r *proto.ApplyRequest) (*proto.ApplyResponse, error) {
	began := time.Now()
	a, err := s.decided(ctx, r, false)
	if err != nil {
		return nil, err
	}
	if !r.GetDryRun() {
		for n := 1; ; n++ {
			err = s.write(ctx, a)
			if !isConflict(err) || n == attempts || !s.outrun(ctx, a) {
				break
			}
			if a, err = s.decided(ctx, r, true); err != nil {
				return nil, err
			}
		}
		s.cfg.Trace.Tell(trace.Span{Name: "apply", Self: a.trace, Began: began, Ended: time.Now(), Err: err, About: []string{"stead.user", user(ctx)}})
		if isConflict(err) {
			err = s.clash(ctx, a.edits, err)
		}
		return a.response(), err
	}
	for _, e := range a.edits {
		e.applied.After = store.Encode(e.docs.after)
		if e.docs.before != nil {
			e.applied.Before = store.Encode(e.docs.before)
		}
	}
	return a.response(), nil
}

// response tells what is done, or would be.
func (d *draft) response() *proto.ApplyResponse {
	out := &proto.ApplyResponse{Warnings: d.warnings, Chose: true}
	for _, e := range d.edits {
		out.Applied = append(out.Applied, e.applied)
	}
	for _, r := range d.removals {
		out.Pruned = append(out.Pruned, r.applied)
	}
	return out
}

// decided is all that r means now. again: it was decided before, and what counts for a quota has changed since.
func (s objects) decided(ctx context.Context, r *proto.ApplyRequest, again bool) (*draft, error) {
	files := make([]manifest.Source, 0, len(r.GetFiles()))
	for _, f := range r.GetFiles() {
		files = append(files, manifest.Source{Name: f.GetName(), Content: f.GetContent()})
	}
	selector, err := applySelector(r)
	if err != nil {
		return nil, err
	}
	objects, problems, warnings := manifest.Parse(files, manifest.Options{
		Namespace: namespace(r.GetNamespace()), SkipUnsupported: r.GetSkipUnsupported(), Selector: selector,
		Host: s.cfg.Host, Domain: s.cfg.About.GetDomain(), LoadBalancers: len(s.cfg.LoadBalancers) > 0,
	})
	if len(problems) > 0 {
		return nil, invalid("%s", strings.Join(texts(problems), "\n"))
	}
	a, err := s.draft(ctx, &objects, r.GetRenameService())
	if err != nil {
		return nil, err
	}
	a.warnings = append(texts(warnings), a.warnings...)
	if err := a.prune(ctx, &objects, r.GetPrune(), selector); err != nil {
		return nil, err
	}
	if err := a.within(ctx); err != nil {
		return nil, err
	}
	return a, a.count(ctx, &objects, again)
}

// write commits what is not unchanged, all or nothing.
func (s objects) write(ctx context.Context, d *draft) error {
	var txn store.Txn
	for _, e := range d.edits {
		if e.value != nil {
			txn.If = append(append(txn.If, store.Seen(e.key, e.seen)), e.also.If...)
			txn.Then = append(append(txn.Then, store.Put(e.key, e.value)), e.also.Then...)
		}
	}
	for _, r := range d.removals {
		txn.If = append(txn.If, store.Seen(r.key, r.seen))
		txn.Then = append(txn.Then, r.op())
		if err := s.freePruned(ctx, r, &txn); err != nil {
			return err
		}
	}
	if len(txn.Then) == 0 {
		return nil
	}
	txn.If, txn.Then = append(txn.If, d.counted.If...), append(txn.Then, d.counted.Then...)
	return s.commit(ctx, "one of the objects", txn)
}

// newUID is 128 random bits.
func newUID() spec.UID {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // never fails
	return spec.UID(hex.EncodeToString(b))
}

func texts(problems []manifest.Problem) []string {
	out := make([]string, 0, len(problems))
	for _, p := range problems {
		out = append(out, p.String())
	}
	return out
}
