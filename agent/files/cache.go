package files

import (
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

type cacheKey struct {
	kind string
	ns   spec.Namespace
	name string
}

// Cache holds the newest content of the ConfigMaps and Secrets that the node's
// lives name. Its methods are safe for concurrent use.
type Cache struct {
	mu    sync.Mutex
	files map[cacheKey]records.Files
}

// Put takes what the server sent: full replaces all. It never goes back: of each
// object an older content than the one known is ignored.
func (c *Cache) Put(full bool, received []records.Files) {
	c.mu.Lock()
	defer c.mu.Unlock()
	next := map[cacheKey]records.Files{}
	if !full {
		maps.Copy(next, c.files)
	}
	for _, f := range received {
		key := cacheKey{f.Kind, f.Namespace, f.Name}
		if had, ok := c.files[key]; ok && had.Sequence.Compare(f.Sequence) > 0 {
			f = had
		}
		next[key] = f
	}
	c.files = next
}

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
	f, ok := c.files[cacheKey{kind, ns, name}]
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
