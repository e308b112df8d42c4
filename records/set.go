package records

import (
	"cmp"
	"maps"
	"time"

	"github.com/stead-project/stead/records/hooks"
	"github.com/stead-project/stead/spec"
)

// Set is the record sets/<ns>/<set>. Only writer: control.
type Set struct {
	Ref        spec.SetRef `json:"ref"`
	UID        spec.UID    `json:"uid"`
	Generation int64       `json:"generation"`
	// InitialReplicas is the number of members when the set first had any: the set is
	// bootstrapped once each of them was ready once (SAFETY S16).
	InitialReplicas int `json:"initialReplicas"`
	// InitialOrdinals is Spec.Ordinals at that time; nil: see InitialRange.
	InitialOrdinals *spec.Ordinals    `json:"initialOrdinals,omitempty"`
	Labels          map[string]string `json:"labels,omitempty"`
	Annotations     map[string]string `json:"annotations,omitempty"`
	Spec            spec.SetSpec      `json:"spec"`
	// RestartedAt is set by "rollout restart": it is part of what members run (see
	// Template), so that a new value is a new revision; apply keeps it.
	RestartedAt string `json:"restartedAt,omitempty"`
	Paused      bool   `json:"paused,omitempty"`
	// Deleting is set by control; the engine removes the record last.
	Deleting bool `json:"deleting,omitempty"`
	// Orphaned: nobody owns the members. They run on as they are, and nothing is done
	// for them, until apply adopts them (which clears it) or the set is deleted.
	Orphaned bool `json:"orphaned,omitempty"`
	// SkipDecommission: members that are out of range stop without their hook decommission, until the range changes again.
	SkipDecommission bool `json:"skipDecommission,omitempty"`
	// JobDecision is what a user said last of a run of a job; void for every other run.
	JobDecision *hooks.JobDecision `json:"jobDecision,omitempty"`
	// CreatedAt is for people only; no decision reads it.
	CreatedAt time.Time `json:"createdAt"`
	// Edits are the last ones, the newest last; for people only.
	Edits []Edit `json:"edits,omitempty"`
	// Trace names the span of the apply that made this generation; "": traces are off, or it was no apply.
	Trace string `json:"trace,omitempty"`
}

// Edit tells who made a generation of a set, and of what. A deletion or an orphaning
// makes none: it stands with the generation it found.
type Edit struct {
	Generation int64 `json:"generation"`
	// Verb is what was done: apply, scale, undo, ...; By the user, as the client says.
	Verb string `json:"verb"`
	By   string `json:"by,omitempty"`
	// Changes are some of the fields: "spec.replicas 3 → 5".
	Changes []string  `json:"changes,omitempty"`
	At      time.Time `json:"at"`
}

// Replicas is the number of members wanted (0 when unset).
func (s *Set) Replicas() int {
	if s.Spec.Replicas == nil {
		return 0
	}
	return int(*s.Spec.Replicas)
}

// The annotations that concern revisions.
const (
	// RestartedAtAnnotation on a template tells when a restart of all was asked for.
	RestartedAtAnnotation = "stead.dev/restartedAt"
	// ChangeCauseAnnotation on a set says why its revision was made.
	ChangeCauseAnnotation = "kubernetes.io/change-cause"
)

// Template is what members run: the spec's template, marked with RestartedAt. The
// caller must not change it.
func (s *Set) Template() spec.Template {
	t := s.Spec.Template
	if s.RestartedAt != "" {
		t.Metadata.Annotations = maps.Clone(t.Metadata.Annotations)
		if t.Metadata.Annotations == nil {
			t.Metadata.Annotations = map[string]string{}
		}
		t.Metadata.Annotations[RestartedAtAnnotation] = s.RestartedAt
	}
	return t
}

// SetRevision makes members run what r holds.
func (s *Set) SetRevision(r *Revision) {
	s.Spec.Template, s.Spec.Members = spec.Clone(r.Template), spec.Clone(r.Members)
	s.RestartedAt = r.Template.Metadata.Annotations[RestartedAtAnnotation]
	delete(s.Spec.Template.Metadata.Annotations, RestartedAtAnnotation)
}

// Start is the lowest ordinal.
func (s *Set) Start() int {
	if s.Spec.Ordinals == nil {
		return 0
	}
	return int(s.Spec.Ordinals.Start)
}

// Service is the governing service: the DNS name under which the members are found.
func (s *Set) Service() string { return cmp.Or(s.Spec.ServiceName, string(s.Ref.Name)) }

// Range is which ordinals the members have.
func (s *Set) Range() spec.OrdinalRange { return s.Spec.Ordinals.Range(s.Replicas()) }

// InitialRange is which ordinals the initial members had. A set that an earlier version
// made does not say; its present range is taken then.
func (s *Set) InitialRange() spec.OrdinalRange {
	return cmp.Or(s.InitialOrdinals, s.Spec.Ordinals).Range(s.InitialReplicas)
}

// Revision is the record revisions/<ns>/<set>/<hash>. The template and the differences never change.
type Revision struct {
	Ref         spec.SetRef       `json:"ref"`
	SetUID      spec.UID          `json:"setUID"`
	Hash        spec.RevisionHash `json:"hash"`
	HashVersion int               `json:"hashVersion"`
	Number      int64             `json:"number"`
	Template    spec.Template     `json:"template"`
	// Members are the set's differences from Template, by ordinals.
	Members spec.Differences `json:"members,omitempty"`
	// ChangeCause is the set's annotation kubernetes.io/change-cause at that time.
	ChangeCause string    `json:"changeCause,omitempty"`
	CreatedAt   time.Time `json:"createdAt"`
}

// TemplateOf is what the member of an ordinal runs. The caller must not change it.
func (r *Revision) TemplateOf(ordinal int) *spec.Template {
	return r.Members.Apply(&r.Template, ordinal)
}

// Event is events/<ns>/<set>/<id> (leased 24 h): what happened and why, once per cause.
type Event struct {
	Ref     spec.SetRef `json:"ref"`
	Member  string      `json:"member,omitempty"`
	Type    string      `json:"type"` // Normal or Warning
	Reason  string      `json:"reason"`
	Message string      `json:"message"`
	Count   int         `json:"count"`
	At      time.Time   `json:"at"`
}

// Bootstrapped is bootstrapped/<set uid>, never unset while the set is there; and
// bootstrapped/<ns>/<set> while the set is gone and volumes of it are kept.
type Bootstrapped struct {
	SetUID spec.UID   `json:"setUID"`
	Token  spec.Token `json:"token"`
}

// RevisionHash names the revision of what the set's members should run: of stored
// (ascending by number) the newest that differs in nothing that a running
// member would notice, else what its template and differences hash to. So a change of labels, which hold
// from the set's own spec, restarts nobody, and makes no revision. A revision that an earlier
// version of Stead named keeps its name; if another template has that hash now, it gets
// another one.
func (s *Set) RevisionHash(stored []*Revision) spec.RevisionHash {
	hash := s.Spec.Members.Hash(s.Template())
	taken := false
	for n := len(stored) - 1; n >= 0; n-- {
		r := stored[n]
		if r.Hash == hash && r.HashVersion >= spec.HashVersion || s.SameRevision(r) {
			return r.Hash
		}
		taken = taken || r.Hash == hash
	}
	if taken {
		return hash.Again()
	}
	return hash
}

// SameRevision reports whether no member that runs r needs a new life to run what the set says now.
func (s *Set) SameRevision(r *Revision) bool {
	t := s.Template()
	if !r.Members.Same(s.Spec.Members) {
		return false
	}
	for _, ordinal := range r.Members.Samples() { // a variable of one of them may show a label
		if !s.SameLife(*r.TemplateOf(ordinal), *s.Spec.Members.Apply(&t, ordinal)) {
			return false
		}
	}
	return true
}

// SameLife reports whether a member that runs a needs no new life to run b: they differ
// in labels at most, and with updateStrategy.metadata: Live in annotations, but in none
// that a variable or a file shows.
func (s *Set) SameLife(a, b spec.Template) bool {
	return spec.SameTemplate(s.noticed(a), s.noticed(b))
}

// noticed is t without what a running member does not notice. What a variable or a file shows,
// it does.
func (s *Set) noticed(t spec.Template) spec.Template {
	labels, annotations := map[string]bool{}, map[string]bool{RestartedAtAnnotation: true}
	for c := range t.Spec.All() {
		addShown(c, labels, annotations)
	}
	for f := range t.Spec.FileFacts() {
		addField(f.FieldRef, &t.Metadata, labels, annotations)
	}
	t.Metadata.Labels = only(t.Metadata.Labels, labels)
	if s.Spec.UpdateStrategy.Metadata == spec.MetadataLive {
		t.Metadata.Annotations = only(t.Metadata.Annotations, annotations)
	}
	return t
}

// addShown adds the labels and annotations that variables of c show.
func addShown(c *spec.Container, labels, annotations map[string]bool) {
	for _, e := range c.Env {
		if e.ValueFrom != nil {
			addField(e.ValueFrom.FieldRef, nil, labels, annotations)
		}
	}
}

// addField adds the labels and annotations that f, which may be nil, shows: one, or all of m.
func addField(f *spec.FieldRef, m *spec.ObjectMeta, labels, annotations map[string]bool) {
	if f == nil {
		return
	}
	switch of, key := f.Keyed(); {
	case of == "labels":
		labels[key] = true
	case of == "annotations":
		annotations[key] = true
	case m == nil:
	case f.FieldPath == "metadata.labels":
		addKeys(labels, m.Labels)
	case f.FieldPath == "metadata.annotations":
		addKeys(annotations, m.Annotations)
	}
}

func addKeys(to map[string]bool, m map[string]string) {
	for key := range m {
		to[key] = true
	}
}

// only is m without other keys than those.
func only(m map[string]string, keys map[string]bool) map[string]string {
	var out map[string]string
	for k, v := range m {
		if keys[k] {
			if out == nil {
				out = map[string]string{}
			}
			out[k] = v
		}
	}
	return out
}
