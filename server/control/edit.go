package control

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/stead-project/stead/manifest"
	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/sealing"
	"github.com/stead-project/stead/server/seal"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// The outcomes of an edit.
const (
	created    = "created"
	configured = "configured"
	unchanged  = "unchanged"
	adopted    = "adopted" // a set that was orphaned
)

// edit is what apply does to one object.
type edit struct {
	applied *proto.Applied
	key     string
	seen    store.Rev // of the object as it was read; 0: absent
	value   []byte    // nil when unchanged
	docs    documents
	was     *records.Set // a set as it was; nil: it is new
	now     *records.Set // and as it will be
	renames bool         // its governing service, which is meant
	frozen  bool         // it is immutable, and would change
	also    store.Txn    // what is written, and compared, with value
}

// name is as in "set default/db".
func (e *edit) name() string {
	return fmt.Sprintf("%s %s/%s", e.applied.GetKind(), e.applied.GetNamespace(), e.applied.GetName())
}

// documents are the object before (nil: absent) and after, as manifests; for people.
type documents struct{ before, after any }

// finish fills in what follows from before and after.
func finish(kind string, ns spec.Namespace, name string, kv store.KV, same bool, record any) edit {
	e := edit{key: keyOf[kind](ns, name), seen: kv.Mod, applied: &proto.Applied{Kind: kind, Namespace: string(ns), Name: name, Outcome: unchanged}}
	if same {
		return e
	}
	e.applied.Outcome = configured
	if kv.Mod == 0 {
		e.applied.Outcome = created
	}
	e.value = store.Encode(record)
	return e
}

// editMeta is what a new set gets besides its spec, and who edits an old one.
type editMeta struct {
	uid    spec.UID
	now    time.Time // for people
	by     string    // for people
	rename bool      // another serviceName is meant
	trace  string    // the span of the apply
}

// before decodes the object as it was; nil when it is new.
func before[T any](kv store.KV) (*T, error) {
	if kv.Mod == 0 {
		return nil, nil
	}
	record, err := store.Decode[T](kv)
	if err != nil {
		return nil, internal("%v; repair the record by hand first", err)
	}
	return &record, nil
}

// setEdit makes the set of m, or makes it equal to m. Without replicas in m the
// present number stays. problems tell what may not change.
func setEdit(m spec.StatefulSet, kv store.KV, b editMeta, read manifest.SeenSet) (edit, []manifest.Problem, error) {
	old, err := before[records.Set](kv)
	if err != nil {
		return edit{}, nil, err
	}
	now := &records.Set{
		Ref: refOf(m), UID: b.uid, Labels: m.Metadata.Labels, Annotations: m.Metadata.Annotations,
		Spec: spec.Clone(m.Spec), Generation: 1, CreatedAt: b.now, Trace: b.trace,
	}
	if old != nil {
		return changeSet(old, now, kv, b, read)
	}
	if now.Spec.Replicas == nil {
		now.Spec.Replicas = new(int32(1))
	}
	settleInitial(now)
	now.Edits = []records.Edit{{Generation: 1, Verb: "apply", By: b.by, At: b.now}}
	e := finish(proto.KindSet, now.Ref.Namespace, string(now.Ref.Name), kv, false, now)
	e.docs.after, e.now = manifest.OfSet(now), now
	return e, nil, nil
}

// changeSet makes old equal to now, which has the spec and labels of the manifest.
func changeSet(old, now *records.Set, kv store.KV, b editMeta, read manifest.SeenSet) (edit, []manifest.Problem, error) {
	was := spec.Clone(*old)
	spec.Default(&was.Spec) // written by an older version, it may lack defaults
	if now.Spec.Replicas == nil {
		now.Spec.Replicas = was.Spec.Replicas
	}
	now.UID, now.CreatedAt, now.Edits = old.UID, old.CreatedAt, old.Edits
	now.InitialReplicas, now.InitialOrdinals = old.InitialReplicas, old.InitialOrdinals
	settleInitial(now)
	now.SkipDecommission, now.JobDecision = old.SkipDecommission, old.JobDecision
	settleSkip(now, &was)
	now.Paused, now.RestartedAt, now.Generation = old.Paused, old.RestartedAt, old.Generation
	fixed := b.fixed(&was, now)
	same := sameJSON(was.Spec, now.Spec) && !old.Orphaned
	if same {
		now.Trace = old.Trace
	} else {
		verb := "apply"
		if old.Orphaned {
			verb = "adopt"
		}
		now.Generation++
		note(now, &was, records.Edit{Verb: verb, By: b.by, At: b.now})
	}
	same = same && maps.Equal(old.Labels, now.Labels) && maps.Equal(old.Annotations, now.Annotations)
	e := finish(proto.KindSet, now.Ref.Namespace, string(now.Ref.Name), kv, same, now)
	e.docs = documents{manifest.OfSet(&was), manifest.OfSet(now)}
	e.was, e.now, e.renames = &was, now, b.rename && was.Service() != now.Service()
	problems := manifest.ValidateUpdate(fixed, &now.Spec)
	if old.Orphaned {
		e.applied.Outcome = adopted
		problems = append(manifest.ValidateAdoption(fixed, &now.Spec), otherSet(old, read)...)
	}
	if p, stale := staleProblem(old, read); stale && !same {
		problems = append(problems, p)
	}
	if old.Deleting {
		problems = []manifest.Problem{{What: "set " + now.Ref.String() + " is being deleted", Fix: "wait until it is gone and apply again"}}
	}
	return e, problems, nil
}

// settleInitial makes the first members a set ever has its initial ones: those who
// form a cluster with each other, at the ordinals that it has then. A set that was created empty has none yet.
func settleInitial(s *records.Set) {
	if s.InitialReplicas == 0 {
		s.InitialReplicas, s.InitialOrdinals = s.Replicas(), &spec.Ordinals{}
		if s.Spec.Ordinals != nil {
			*s.InitialOrdinals = spec.Clone(*s.Spec.Ordinals)
		}
	}
}

// settleSkip ends with a change of the range that members leave without their hook.
func settleSkip(s, was *records.Set) {
	s.SkipDecommission = s.SkipDecommission && s.Replicas() == was.Replicas() && sameJSON(s.Spec.Ordinals, was.Spec.Ordinals)
}

// sameJSON compares by stored form: 1Gi equals 1024Mi.
func sameJSON(a, b any) bool { return bytes.Equal(store.Encode(a), store.Encode(b)) }

// objectEdit makes an object that is not a set, or makes it equal to now. same tells whether
// the old one has the same content, and is called before shown, which is its manifest.
func objectEdit[R any, P interface {
	*R
	Common() *records.Meta
}](kind string, kvs map[string]store.KV, now P, same func(old P) bool, shown func(P) any) (edit, error) {
	meta := now.Common()
	kv := kvs[keyOf[kind](meta.Namespace, meta.Name)]
	old, err := before[R](kv)
	if err != nil {
		return edit{}, err
	}
	var docs documents
	unchanged, frozen := false, false
	if old != nil {
		was := P(old).Common()
		unchanged = same(old)
		frozen = !unchanged && immutable(old)
		docs.before = shown(old)
		meta.Generation = was.Generation
		if !unchanged {
			meta.Generation++
		}
		unchanged = unchanged && meta.SameMarks(was)
	}
	docs.after = shown(now)
	e := finish(kind, meta.Namespace, meta.Name, kv, unchanged, now)
	e.docs, e.frozen = docs, frozen
	return e, nil
}

func budgetEdit(m spec.PodDisruptionBudget, kvs map[string]store.KV) (edit, *records.BudgetRecord, error) {
	type record = records.BudgetRecord
	now := &record{Meta: records.MetaOf(m.Metadata), Spec: m.Spec}
	e, err := objectEdit(proto.KindBudget, kvs, now,
		func(old *record) bool { return sameJSON(old.Spec, now.Spec) }, func(r *record) any { return manifest.OfBudget(r) })
	return e, now, err
}

func configEdit(m spec.ConfigMap, kvs map[string]store.KV) (edit, error) {
	type record = records.ConfigRecord
	now := &record{Meta: records.MetaOf(m.Metadata), Files: m.Files(), Immutable: m.Immutable}
	return objectEdit(proto.KindConfigMap, kvs, now,
		func(old *record) bool { return old.Immutable == now.Immutable && equalFiles(old.Files, now.Files) },
		func(r *record) any { return manifest.OfConfigMap(r) })
}

// secretEdit seals the files of m, with the key that seals as the keyring among kvs says. An old Secret that does not
// open is replaced.
func secretEdit(m spec.Secret, kvs map[string]store.KV, key *seal.Key) (edit, error) {
	ring, err := store.DecodeIn[sealing.Ring](kvs, store.KeyringKey)
	if err != nil {
		return edit{}, err
	}
	if ring != nil && key.Use(ring.Sealing) != nil {
		return edit{}, unavailable("this server lacks the key %s, which seals Secrets since the last rotation; see 'stead keyring ls'", ring.Sealing)
	}
	type record = records.SecretRecord
	files := m.Files()
	now := &record{Meta: records.MetaOf(m.Metadata), Type: m.Type, Keys: slices.Sorted(maps.Keys(files)), Immutable: m.Immutable}
	if now.Sealed, err = key.Seal(now.Namespace, now.Name, files); err != nil {
		return edit{}, err
	}
	var present map[string][]byte
	same := func(old *record) bool {
		opened, err := key.Open(old)
		present = opened
		return err == nil && old.Type == now.Type && old.Immutable == now.Immutable && equalFiles(present, files)
	}
	e, err := objectEdit(proto.KindSecret, kvs, now, same, func(r *record) any {
		if r == now {
			return covered(now, present, files, "after")
		}
		return covered(r, files, present, "before")
	})
	e.also.If = append(e.also.If, store.Seen(store.KeyringKey, kvs[store.KeyringKey].Mod))
	return e, err
}

// immutable: its content may not change.
func immutable(record any) bool {
	switch r := record.(type) {
	case *records.ConfigRecord:
		return r.Immutable
	case *records.SecretRecord:
		return r.Immutable
	}
	return false
}

// covered is a Secret as a difference may show it: of each value only whether it is
// that of the other side.
func covered(r *records.SecretRecord, other, own map[string][]byte, side string) spec.Secret {
	out := spec.Secret{APIVersion: "v1", Kind: "Secret", Type: r.Type, Immutable: r.Immutable, StringData: map[string]string{}, Metadata: r.Manifest()}
	for _, name := range r.Keys {
		out.StringData[name] = "***"
		if value, known := other[name]; !known || !bytes.Equal(value, own[name]) {
			out.StringData[name] = "*** (" + side + ")"
		}
	}
	return out
}

func equalFiles[B ~[]byte](a, b map[string]B) bool {
	return maps.EqualFunc(a, b, func(x, y B) bool { return bytes.Equal(x, y) })
}

// tooLarge tells which objects cannot be stored for their size.
func tooLarge(edits []edit) []string {
	var out []string
	for _, e := range edits {
		if len(e.value) > maxObjectBytes {
			out = append(out, fmt.Sprintf("%s: %d bytes as stored; at most %d may be, which is %d bytes of values in base64",
				e.name(), len(e.value), maxObjectBytes, maxObjectBytes/4*3))
		}
	}
	return out
}
