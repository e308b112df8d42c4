package files

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

// part is one source of a volume's files: an object, or facts of the member.
type part struct {
	source
	items []spec.KeyToPath // of an object; none: all its keys
	facts []spec.DownwardAPIFile
}

func (p *part) isObject() bool { return p.kind != "" }

// partsOf are the sources of a volume's files, in order; none: it is of another kind, or empty.
func partsOf(v *spec.VolumeMedia) []part {
	switch {
	case v.ConfigMap != nil:
		return []part{{source: source{KindConfigMap, v.ConfigMap.Name, v.ConfigMap.Optional}, items: v.ConfigMap.Items}}
	case v.Secret != nil:
		return []part{{source: source{KindSecret, v.Secret.SecretName, v.Secret.Optional}, items: v.Secret.Items}}
	case v.DownwardAPI != nil:
		return []part{{facts: v.DownwardAPI.Items}}
	case v.Projected == nil:
		return nil
	}
	var out []part
	for _, p := range v.Projected.Sources {
		if o := p.ConfigMap; o != nil {
			out = append(out, part{source: source{KindConfigMap, o.Name, o.Optional}, items: o.Items})
		}
		if o := p.Secret; o != nil {
			out = append(out, part{source: source{KindSecret, o.Name, o.Optional}, items: o.Items})
		}
		if p.DownwardAPI != nil {
			out = append(out, part{facts: p.DownwardAPI.Items})
		}
	}
	return out
}

// modeOf is the mode of the files that say none; nil: the default.
func modeOf(v *spec.VolumeMedia) *int32 {
	switch {
	case v.ConfigMap != nil:
		return v.ConfigMap.DefaultMode
	case v.Secret != nil:
		return v.Secret.DefaultMode
	case v.DownwardAPI != nil:
		return v.DownwardAPI.DefaultMode
	case v.Projected != nil:
		return v.Projected.DefaultMode
	}
	return nil
}

// mediaFiles are the files of one volume, by path. Of two sources that have the same path the
// later one counts, as in Kubernetes. Errors: *MissingError.
func mediaFiles(l *records.Life, v *spec.VolumeMedia, n Node, find Lookup) (map[string]MediaFile, error) {
	out := map[string]MediaFile{}
	for _, p := range partsOf(v) {
		var files map[string]MediaFile
		var err error
		if p.isObject() {
			files, err = project(l.Member.ID.Namespace, p.source, p.items, modeOf(v), find)
		} else {
			files, err = factFiles(l, p.facts, modeOf(v), n)
		}
		if err != nil {
			return nil, err
		}
		maps.Copy(out, files)
	}
	return out, belowFile(out)
}

// belowFile names a file that another one would have to be a directory for.
func belowFile(files map[string]MediaFile) error {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			if _, isFile := files[dir]; isFile {
				return &MissingError{fmt.Sprintf("%q is a file, and %q is to be below it; give one of them another path", dir, name)}
			}
		}
	}
	return nil
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

// factFiles are facts of the member as files.
func factFiles(l *records.Life, facts []spec.DownwardAPIFile, mode *int32, n Node) (map[string]MediaFile, error) {
	out := map[string]MediaFile{}
	for _, f := range facts {
		text, err := fact(l, f, n)
		if err != nil {
			return nil, err
		}
		out[path.Clean(f.Path)] = MediaFile{scalar.Bytes(text), bits(mode, f.Mode)}
	}
	return out, nil
}

func fact(l *records.Life, f spec.DownwardAPIFile, n Node) (string, error) {
	if f.ResourceFieldRef != nil {
		return resourceValue(l, nil, f.ResourceFieldRef, n)
	}
	if f.FieldRef == nil {
		return "", nil
	}
	switch f.FieldRef.FieldPath {
	case "metadata.labels":
		return lines(Labels(l)), nil
	case "metadata.annotations":
		return lines(l.Template.Metadata.Annotations), nil
	}
	field, err := fieldOf(f.FieldRef.FieldPath)
	if err != nil {
		return "", err
	}
	return field(l, n), nil
}

// lines are key="value" by key, without a last newline: as Kubernetes writes labels.
func lines(m map[string]string) string {
	out := make([]string, 0, len(m))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		out = append(out, fmt.Sprintf("%s=%q", key, m[key]))
	}
	return strings.Join(out, "\n")
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
