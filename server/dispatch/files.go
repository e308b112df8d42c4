package dispatch

import (
	"cmp"
	"maps"
	"slices"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/seal"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
	"github.com/stead-project/stead/store"
)

// The kinds of FileRef and records.Files.
const (
	KindConfigMap = "ConfigMap"
	KindSecret    = "Secret"
)

// FileRef names a ConfigMap or Secret that a template takes files, variables or credentials from.
type FileRef struct {
	Kind      string
	Namespace spec.Namespace
	Name      string
}

// FilesOf lists what t names in namespace ns, sorted, each once.
func FilesOf(ns spec.Namespace, t *spec.Template) []FileRef {
	return ordered(append(sources(ns, t, nil), PullSecretsOf(ns, t)...))
}

func ordered(refs []FileRef) []FileRef {
	slices.SortFunc(refs, FileRef.compare)
	return slices.Compact(refs)
}

// PullSecretsOf lists the Secrets of the imagePullSecrets of t, sorted, each once: nothing waits
// for them.
func PullSecretsOf(ns spec.Namespace, t *spec.Template) []FileRef {
	var refs []FileRef
	for _, s := range t.Spec.ImagePullSecrets {
		if s.Name != "" {
			refs = append(refs, FileRef{KindSecret, ns, s.Name})
		}
	}
	return ordered(refs)
}

// SourcesOf lists what members of the set take files or variables from, sorted, each once.
func SourcesOf(ns spec.Namespace, s *spec.SetSpec) []FileRef {
	return sources(ns, &s.Template, s.Members)
}

func sources(ns spec.Namespace, t *spec.Template, differences spec.Differences) []FileRef {
	var refs []FileRef
	add := func(kind, name string) { refs = append(refs, FileRef{kind, ns, name}) }
	for _, v := range t.Spec.Volumes {
		if v.ConfigMap != nil {
			add(KindConfigMap, v.ConfigMap.Name)
		}
		if v.Secret != nil {
			add(KindSecret, v.Secret.SecretName)
		}
		if v.Projected != nil {
			projectedFiles(v.Projected, add)
		}
	}
	for c := range t.Spec.All() {
		envFiles(c.Env, c.EnvFrom, add)
	}
	for i := range differences {
		envFiles(differences[i].Env, nil, add)
	}
	return ordered(refs)
}

func (r FileRef) compare(o FileRef) int {
	return cmp.Or(cmp.Compare(r.Kind, o.Kind), cmp.Compare(r.Namespace, o.Namespace), cmp.Compare(r.Name, o.Name))
}

func projectedFiles(v *spec.ProjectedVolume, add func(kind, name string)) {
	for _, p := range v.Sources {
		if p.ConfigMap != nil {
			add(KindConfigMap, p.ConfigMap.Name)
		}
		if p.Secret != nil {
			add(KindSecret, p.Secret.Name)
		}
	}
}

func envFiles(env []spec.EnvVar, from []spec.EnvFromSource, add func(kind, name string)) {
	for _, e := range env {
		if e.ValueFrom == nil {
			continue
		}
		if r := e.ValueFrom.ConfigMapKeyRef; r != nil {
			add(KindConfigMap, r.Name)
		}
		if r := e.ValueFrom.SecretKeyRef; r != nil {
			add(KindSecret, r.Name)
		}
	}
	for _, e := range from {
		if e.ConfigMapRef != nil {
			add(KindConfigMap, e.ConfigMapRef.Name)
		}
		if e.SecretRef != nil {
			add(KindSecret, e.SecretRef.Name)
		}
	}
}

// key is where the store has what r names.
func (r FileRef) key() string {
	if r.Kind == KindSecret {
		return store.SecretKey(r.Namespace, r.Name)
	}
	return store.ConfigKey(r.Namespace, r.Name)
}

// fileContent reads what r names, opened. Its errors hold nothing of the content.
func fileContent(v cache.View, key *seal.Key, r FileRef) (records.Files, error) {
	f := records.Files{Kind: r.Kind, Namespace: r.Namespace, Name: r.Name, Sequence: sequence(v)}
	config, secret := v.Config(r.Namespace, r.Name), v.Secret(r.Namespace, r.Name)
	switch {
	case r.Kind == KindSecret && secret != nil:
		files, err := key.Open(secret)
		if err != nil {
			return f, err
		}
		f.Type, f.Content = secret.Type, make(map[string]scalar.Bytes, len(files))
		for name, b := range files {
			f.Content[name] = b
		}
	case r.Kind == KindConfigMap && config != nil:
		f.Content = config.Files
	default:
		f.Absent = true
	}
	return f, nil
}

func sequence(v cache.View) spec.Sequence {
	return spec.Sequence{Epoch: v.Epoch(), Rev: int64(v.Rev())}
}

// nextFiles returns what the lives sent name and is new or changed, in order, and
// takes it as sent. What no life names any more is forgotten.
func (s *sentState) nextFiles(v cache.View) []FileRef {
	var out []FileRef
	for r := range s.named {
		rev := v.ModRev(r.key())
		if old, known := s.files[r]; known && old == rev {
			continue
		}
		s.files[r] = rev
		out = append(out, r)
	}
	maps.DeleteFunc(s.files, func(r FileRef, _ store.Rev) bool { return s.named[r] == 0 })
	slices.SortFunc(out, FileRef.compare)
	return out
}

// restoreOpen: a restore waits for nodes (SAFETY S8). Until it is complete a node is sent the lives
// that it has, and nothing that would start, end or be given up.
func restoreOpen(v cache.View) bool {
	return v.Count().Open(v.Epoch())
}

// mayLiveElsewhere: to order m, which its node has not started, could start a second life. A
// store that went back may have a life that was ordered and never started, and replaced since.
// One that was started, as a report says, no node starts twice: it is sent, for an answer.
func mayLiveElsewhere(v cache.View, m *records.Member) bool {
	if r := v.Report(m.ID); r != nil && r.Token == m.Token && r.Phase.Rank() > records.PhasePreparing.Rank() {
		return false
	}
	return restoreOpen(v) || len(v.UnknownLives(m.ID)) > 0
}
