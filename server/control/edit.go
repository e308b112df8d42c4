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
	"github.com/stead-project/stead/server/seal"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
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
}

// documents are the object before (nil: absent) and after, as manifests; for people.
type documents struct{ before, after any }

// finish fills in what follows from before and after.
func finish(kind string, ns spec.Namespace, name, key string, kv store.KV, same bool, record any) edit {
	e := edit{key: key, seen: kv.Mod, applied: &proto.Applied{Kind: kind, Namespace: string(ns), Name: name, Outcome: unchanged}}
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
	now := records.Set{
		Ref:    spec.SetRef{Namespace: m.Metadata.Namespace, Name: spec.SetName(m.Metadata.Name)},
		UID:    b.uid,
		Labels: m.Metadata.Labels, Annotations: m.Metadata.Annotations,
		Spec: spec.Clone(m.Spec), Generation: 1, CreatedAt: b.now,
	}
	if old == nil {
		if now.Spec.Replicas == nil {
			one := int32(1)
			now.Spec.Replicas = &one
		}
		settleInitial(&now)
		now.Edits = []records.Edit{{Generation: 1, Verb: "apply", By: b.by, At: b.now}}
		e := finish(kindSet, now.Ref.Namespace, string(now.Ref.Name), store.SetKey(now.Ref), kv, false, now)
		e.docs.after, e.now = manifest.OfSet(&now), &now
		return e, nil, nil
	}
	then := spec.Clone(*old)
	spec.Default(&then.Spec) // written by an older version, it may lack defaults
	if now.Spec.Replicas == nil {
		now.Spec.Replicas = then.Spec.Replicas
	}
	now.UID, now.CreatedAt = old.UID, old.CreatedAt
	now.InitialReplicas, now.InitialOrdinals = old.InitialReplicas, old.InitialOrdinals
	settleInitial(&now)
	now.Paused, now.RestartedAt, now.Generation = old.Paused, old.RestartedAt, old.Generation
	fixed := b.fixed(&then, &now)
	sameSpec := sameJSON(then.Spec, now.Spec)
	now.Edits = old.Edits
	if verb := "apply"; !sameSpec || old.Orphaned {
		if old.Orphaned {
			verb = "adopt"
		}
		now.Generation++
		note(&now, &then, records.Edit{Verb: verb, By: b.by, At: b.now})
	}
	same := sameSpec && !old.Orphaned && maps.Equal(old.Labels, now.Labels) && maps.Equal(old.Annotations, now.Annotations)
	e := finish(kindSet, now.Ref.Namespace, string(now.Ref.Name), store.SetKey(now.Ref), kv, same, now)
	e.docs = documents{manifest.OfSet(&then), manifest.OfSet(&now)}
	e.was, e.now, e.renames = &then, &now, b.rename && then.Service() != now.Service()
	e.applied.Effects = changeEffects(&then, &now)
	problems := manifest.ValidateUpdate(fixed, &now.Spec)
	if old.Orphaned {
		e.applied.Outcome = adopted
		e.applied.Effects = nil // draft.sets says whom it adopts
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

// sameJSON compares by stored form: 1Gi equals 1024Mi.
func sameJSON(a, b any) bool { return bytes.Equal(store.Encode(a), store.Encode(b)) }

func serviceEdit(m spec.Service, kv store.KV) (edit, records.ServiceRecord, error) {
	old, err := before[records.ServiceRecord](kv)
	if err != nil {
		return edit{}, records.ServiceRecord{}, err
	}
	now := records.ServiceRecord{
		Namespace: m.Metadata.Namespace, Name: m.Metadata.Name, Generation: 1, Labels: m.Metadata.Labels, Spec: m.Spec,
	}
	same, docs := false, documents{after: manifest.OfService(&now)}
	if old != nil {
		sameSpec := sameJSON(old.Spec, now.Spec)
		now.Generation = next(old.Generation, sameSpec)
		same = sameSpec && maps.Equal(old.Labels, now.Labels)
		docs.before = manifest.OfService(old)
	}
	e := finish(kindService, now.Namespace, now.Name, store.ServiceKey(now.Namespace, now.Name), kv, same, now)
	e.docs = docs
	return e, now, nil
}

func configEdit(m spec.ConfigMap, kv store.KV) (edit, error) {
	old, err := before[records.ConfigRecord](kv)
	if err != nil {
		return edit{}, err
	}
	now := records.ConfigRecord{
		Namespace: m.Metadata.Namespace, Name: m.Metadata.Name, Generation: 1, Labels: m.Metadata.Labels,
		Files: map[string]scalar.Bytes{},
	}
	for name, text := range m.Data {
		now.Files[name] = scalar.Bytes(text)
	}
	maps.Copy(now.Files, m.BinaryData)
	same, docs := false, documents{after: manifest.OfConfigMap(&now)}
	if old != nil {
		sameFiles := equalFiles(old.Files, now.Files)
		now.Generation = next(old.Generation, sameFiles)
		same = sameFiles && maps.Equal(old.Labels, now.Labels)
		docs.before = manifest.OfConfigMap(old)
	}
	e := finish(kindConfigMap, now.Namespace, now.Name, store.ConfigKey(now.Namespace, now.Name), kv, same, now)
	e.docs = docs
	return e, nil
}

// secretEdit seals the files of m. An old Secret that does not open is replaced.
func secretEdit(m spec.Secret, kv store.KV, key *seal.Key) (edit, error) {
	old, err := before[records.SecretRecord](kv)
	if err != nil {
		return edit{}, err
	}
	files := make(map[string][]byte, len(m.Data)+len(m.StringData))
	for name, b := range m.Data {
		files[name] = b
	}
	for name, text := range m.StringData {
		files[name] = []byte(text)
	}
	now := records.SecretRecord{
		Namespace: m.Metadata.Namespace, Name: m.Metadata.Name, Generation: 1, Labels: m.Metadata.Labels,
		Type: m.Type, Keys: slices.Sorted(maps.Keys(files)),
	}
	same, docs := false, documents{after: covered(&now, nil, files, "after")}
	if old != nil {
		present, err := key.Open(old)
		docs = documents{covered(old, files, present, "before"), covered(&now, present, files, "after")}
		sameFiles := err == nil && old.Type == now.Type && equalFiles(present, files)
		now.Generation = next(old.Generation, sameFiles)
		same = sameFiles && maps.Equal(old.Labels, now.Labels)
	}
	if now.Sealed, err = key.Seal(now.Namespace, now.Name, files); err != nil {
		return edit{}, err
	}
	e := finish(kindSecret, now.Namespace, now.Name, store.SecretKey(now.Namespace, now.Name), kv, same, now)
	e.docs = docs
	return e, nil
}

// covered is a Secret as a difference may show it: of each value only whether it is
// that of the other side.
func covered(r *records.SecretRecord, other, own map[string][]byte, side string) spec.Secret {
	out := spec.Secret{APIVersion: "v1", Kind: "Secret", Type: r.Type, StringData: map[string]string{},
		Metadata: spec.ObjectMeta{Name: r.Name, Namespace: r.Namespace, Labels: r.Labels}}
	for _, name := range r.Keys {
		out.StringData[name] = "***"
		if value, known := other[name]; !known || !bytes.Equal(value, own[name]) {
			out.StringData[name] = "*** (" + side + ")"
		}
	}
	return out
}

func next(generation int64, same bool) int64 {
	if same {
		return generation
	}
	return generation + 1
}

func equalFiles[B ~[]byte](a, b map[string]B) bool {
	return maps.EqualFunc(a, b, func(x, y B) bool { return bytes.Equal(x, y) })
}

// tooLarge tells which objects cannot be stored for their size.
func tooLarge(edits []edit) []string {
	var out []string
	for _, e := range edits {
		if len(e.value) > maxObjectBytes {
			out = append(out, fmt.Sprintf("%s %s/%s: %d bytes as stored; at most %d may be, which is %d bytes of values in base64",
				e.applied.GetKind(), e.applied.GetNamespace(), e.applied.GetName(), len(e.value), maxObjectBytes, maxObjectBytes/4*3))
		}
	}
	return out
}
