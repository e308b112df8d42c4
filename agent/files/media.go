package files

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

// The kinds of file sources.
const (
	KindConfigMap = "ConfigMap"
	KindSecret    = "Secret"
)

// Lookup finds a ConfigMap or Secret; false: the server has not sent it yet. The
// result is shared and must not be changed.
type Lookup func(kind string, ns spec.Namespace, name string) (records.Files, bool)

// FileSource names a ConfigMap or Secret.
type FileSource struct {
	Kind      string // KindConfigMap or KindSecret
	Namespace spec.Namespace
	Name      string
}

// Cache holds the newest content of the ConfigMaps and Secrets that the node's
// lives name. Its methods are safe for concurrent use.
type Cache struct {
	mu    sync.Mutex
	files map[FileSource]records.Files
}

// Put takes what the server sent: full replaces all. It never goes back: of each
// object an older content than the one known is ignored. It returns the objects of which
// something else is known now.
func (c *Cache) Put(full bool, received []records.Files) (changed map[FileSource]bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	next := map[FileSource]records.Files{}
	if !full {
		maps.Copy(next, c.files)
	}
	for _, f := range received {
		key := FileSource{f.Kind, f.Namespace, f.Name}
		if had, ok := c.files[key]; ok && had.Sequence.Compare(f.Sequence) > 0 {
			f = had
		}
		next[key] = f
	}
	changed = changes(c.files, next)
	c.files = next
	return changed
}

// changes are the objects that are known in another way, or only once.
func changes(before, after map[FileSource]records.Files) map[FileSource]bool {
	out := map[FileSource]bool{}
	for key, f := range after {
		if had, ok := before[key]; !ok || had.Absent != f.Absent || had.Type != f.Type || !maps.EqualFunc(had.Content, f.Content, sameBytes) {
			out[key] = true
		}
	}
	for key := range before {
		if _, ok := after[key]; !ok {
			out[key] = true
		}
	}
	return out
}

func sameBytes(a, b scalar.Bytes) bool { return bytes.Equal(a, b) }

// All returns everything in the cache; the content is shared and must not be changed.
func (c *Cache) All() []records.Files {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Values(c.files))
}

// Find is the cache as a Lookup.
func (c *Cache) Find(kind string, ns spec.Namespace, name string) (records.Files, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f, ok := c.files[FileSource{kind, ns, name}]
	return f, ok
}

// MissingError says which ConfigMap, Secret or key a life needs and lacks.
type MissingError struct{ Text string }

// Error is the sentence for people.
func (e *MissingError) Error() string { return e.Text }

// source is one reference of a template to a ConfigMap or Secret.
type source struct {
	kind, name string
	optional   bool
}

// content returns the object's content; nil without error when it is optional and
// not there. Errors: *MissingError.
func (s source) content(ns spec.Namespace, find Lookup) (map[string]scalar.Bytes, error) {
	f, ok := find(s.kind, ns, s.name)
	if ok && !f.Absent {
		return f.Content, nil
	}
	if ok && s.optional {
		return nil, nil
	}
	if !ok {
		return nil, &MissingError{fmt.Sprintf("%s %q has not been received from the server yet", s.kind, s.name)}
	}
	return nil, &MissingError{fmt.Sprintf("%s %q does not exist in namespace %s; apply it", s.kind, s.name, ns)}
}

// key returns one key; false without error when it is optional and not there.
func (s source) key(ns spec.Namespace, key string, find Lookup) (scalar.Bytes, bool, error) {
	content, err := s.content(ns, find)
	if err != nil {
		return nil, false, err
	}
	v, ok := content[key]
	if !ok && !s.optional {
		return nil, false, &MissingError{fmt.Sprintf("%s %q has no key %q", s.kind, s.name, key)}
	}
	return v, ok, nil
}

// Media is the content of one volume that shows files.
type Media struct {
	Name  string
	Files map[string]MediaFile // by relative path
}

// MediaFile is one file with its permission bits.
type MediaFile struct {
	Content scalar.Bytes
	Mode    uint32
}

const defaultMode = 0o644

// MediaOf builds the content of all volumes of a life that show files, in the template's
// order. Those of which something is missing are left out, and the first of them is the
// error. Errors: *MissingError.
func MediaOf(l *records.Life, n Node, find Lookup) ([]Media, error) {
	var out []Media
	var first error
	for i := range l.Template.Spec.Volumes {
		v := &l.Template.Spec.Volumes[i]
		if !v.ShowsFiles() {
			continue
		}
		files, err := mediaFiles(l, v, n, find)
		if err == nil {
			out = append(out, Media{Name: v.Name, Files: files})
		} else if first == nil {
			first = fmt.Errorf("volume %s: %w", v.Name, err)
		}
	}
	return out, first
}

// allEnv is the environment of each container.
func allEnv(l *records.Life, n Node, find Lookup) (all [][]string, err error) {
	for c := range l.Template.Spec.All() {
		env, err := Env(l, c, n, find)
		if err != nil {
			return nil, err
		}
		all = append(all, env)
	}
	return all, nil
}

// Fingerprint is a hash of all that a life takes from ConfigMaps and Secrets, as files
// and as variables; empty while something of it is missing.
func Fingerprint(l *records.Life, n Node, find Lookup) string {
	n.Services = nil // they come and go
	media, err := MediaOf(l, n, find)
	all, err2 := allEnv(l, n, find)
	if err != nil || err2 != nil {
		return ""
	}
	h := sha256.New()
	for _, m := range media {
		fmt.Fprintf(h, "%q %s\n", m.Name, m.digest(nil))
	}
	for _, env := range all {
		fmt.Fprintf(h, "%q\n", env)
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:8])
}
