package control

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/stead-project/stead/manifest"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/dispatch"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

var (
	// credential is in the names of keys whose values charts make at random.
	credential = regexp.MustCompile(`(?i)pass|token|secret|key|cookie|salt`)
	// atRandom is what such a value looks like: not a sentence, a number or a certificate.
	atRandom = regexp.MustCompile(`^[A-Za-z0-9+/=_-]{8,512}$`)
)

// rerendered warns of Secrets whose values seem to be made anew by each rendering of a chart: a
// database takes its password once, when its data are created, and refuses the members' clients
// that come with another one. It is said of keys with a credential's name that get another value
// of the same length, when a set of the same apply, which exists, uses the Secret.
func (d *draft) rerendered(o *manifest.Objects) (out []string) {
	for i := range o.Secrets {
		m := &o.Secrets[i]
		keys := d.renewed(m)
		sets := d.usersOf(dispatch.FileRef{Kind: dispatch.KindSecret, Namespace: m.Metadata.Namespace, Name: m.Metadata.Name})
		if len(keys) == 0 || len(sets) == 0 {
			continue
		}
		path := "data[" + keys[0] + "]"
		if _, clear := m.StringData[keys[0]]; clear {
			path = "stringData[" + keys[0] + "]"
		}
		p := manifest.Problem{
			Path: path,
			What: fmt.Sprintf("Secret %s: another value of %s, as a chart makes that renders passwords at random; the data of %s keep the old one",
				m.Metadata.Name, strings.Join(keys, ", "), strings.Join(sets, ", ")),
			Fix: fmt.Sprintf("render with the old value ('stead exec %s-0 -- env' shows variables of members that run), or with the chart's existingSecret; "+
				"if it is meant, change it in the database, too", sets[0]),
		}
		out = append(out, texts(o.Locate("Secret", m.Metadata.Namespace, m.Metadata.Name, []manifest.Problem{p}))...)
	}
	return out
}

// renewed are the keys of a stored Secret that get another value made at random, sorted.
func (d *draft) renewed(m *spec.Secret) (keys []string) {
	old, err := before[records.SecretRecord](d.stored[store.SecretKey(m.Metadata.Namespace, m.Metadata.Name)])
	if err != nil || old == nil {
		return nil
	}
	present, err := d.cfg.Key.Open(old)
	if err != nil {
		return nil // the edit has said so
	}
	for name, value := range m.Files() {
		was := present[name]
		if credential.MatchString(name) && len(was) == len(value) && !bytes.Equal(was, value) && atRandom.Match(was) && atRandom.Match(value) {
			keys = append(keys, name)
		}
	}
	slices.Sort(keys)
	return keys
}

// usersOf are the names of the sets of this apply that exist and whose members use a file.
func (d *draft) usersOf(ref dispatch.FileRef) (sets []string) {
	for i := range d.edits {
		e := &d.edits[i]
		if e.was != nil && slices.Contains(dispatch.SourcesOf(e.now.Ref.Namespace, &e.now.Spec), ref) {
			sets = append(sets, string(e.now.Ref.Name))
		}
	}
	return sets
}
