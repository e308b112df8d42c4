package files

import (
	"errors"
	"fmt"
	"path"

	"github.com/stead-project/stead/spec"
)

// Media is the content of one ConfigMap or Secret volume.
type Media struct {
	Name  string
	Files map[string]MediaFile // by relative path
}

// MediaFile is one file with its permission bits.
type MediaFile struct {
	Content spec.Bytes
	Mode    uint32
}

const defaultMode = 0o644

// MediaOf builds the content of all ConfigMap and Secret volumes of a life, in the
// template's order. Errors: *MissingError.
func MediaOf(l *spec.Life, find Lookup) ([]Media, error) {
	var out []Media
	for _, v := range l.Template.Spec.Volumes {
		var s source
		var items []spec.KeyToPath
		var mode *int32
		switch {
		case v.ConfigMap != nil:
			s = source{KindConfigMap, v.ConfigMap.Name, v.ConfigMap.Optional}
			items, mode = v.ConfigMap.Items, v.ConfigMap.DefaultMode
		case v.Secret != nil:
			s = source{KindSecret, v.Secret.SecretName, v.Secret.Optional}
			items, mode = v.Secret.Items, v.Secret.DefaultMode
		default:
			continue
		}
		files, err := project(l.Member.ID.Namespace, s, items, mode, find)
		if err != nil {
			return nil, fmt.Errorf("volume %s: %w", v.Name, err)
		}
		out = append(out, Media{Name: v.Name, Files: files})
	}
	return out, nil
}

func project(ns spec.Namespace, s source, items []spec.KeyToPath, mode *int32, find Lookup) (map[string]MediaFile, error) {
	content, err := s.content(ns, find)
	if err != nil {
		return nil, err
	}
	out := map[string]MediaFile{}
	if len(items) == 0 {
		for key, value := range content {
			out[key] = MediaFile{value, bits(mode, nil)}
		}
		return out, nil
	}
	for _, item := range items {
		value, ok, err := s.key(ns, item.Key, find)
		if err != nil {
			return nil, err
		}
		if ok {
			out[path.Clean(item.Path)] = MediaFile{value, bits(mode, item.Mode)}
		}
	}
	return out, nil
}

func bits(volume, item *int32) uint32 {
	switch {
	case item != nil:
		return uint32(*item) & 0o777
	case volume != nil:
		return uint32(*volume) & 0o777
	}
	return defaultMode
}

// Missing is the sentence about the first ConfigMap, Secret or key that the life
// needs and that is not there; empty when nothing is missing.
func Missing(l *spec.Life, n Node, find Lookup) string {
	_, err := MediaOf(l, find)
	for i := 0; err == nil && i < len(l.Template.Spec.Containers); i++ {
		_, err = Env(l, &l.Template.Spec.Containers[i], n, find)
	}
	if missing := (*MissingError)(nil); errors.As(err, &missing) {
		return err.Error()
	}
	return ""
}
