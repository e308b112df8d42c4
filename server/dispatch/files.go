package dispatch

import (
	"cmp"
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

// FileRef names a ConfigMap or Secret that a template takes files or variables from.
type FileRef struct {
	Kind      string
	Namespace spec.Namespace
	Name      string
}

// FilesOf lists what t names in namespace ns, sorted, each once.
func FilesOf(ns spec.Namespace, t *spec.Template) []FileRef {
	var refs []FileRef
	add := func(kind, name string) { refs = append(refs, FileRef{kind, ns, name}) }
	for _, v := range t.Spec.Volumes {
		if v.ConfigMap != nil {
			add(KindConfigMap, v.ConfigMap.Name)
		}
		if v.Secret != nil {
			add(KindSecret, v.Secret.SecretName)
		}
	}
	for i := range t.Spec.Containers {
		envFiles(&t.Spec.Containers[i], add)
	}
	slices.SortFunc(refs, FileRef.compare)
	return slices.Compact(refs)
}

func (r FileRef) compare(o FileRef) int {
	return cmp.Or(cmp.Compare(r.Kind, o.Kind), cmp.Compare(r.Namespace, o.Namespace), cmp.Compare(r.Name, o.Name))
}

func envFiles(c *spec.Container, add func(kind, name string)) {
	for _, e := range c.Env {
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
	for _, e := range c.EnvFrom {
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
		f.Content = make(map[string]scalar.Bytes, len(files))
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
