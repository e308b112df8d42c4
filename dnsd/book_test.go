package dnsd

import (
	"net/netip"
	"testing"

	"github.com/stead-project/stead/spec"
)

func TestBook(t *testing.T) {
	ref := spec.SetRef{Namespace: "default", Name: "db"}
	at := func(epoch, rev int64) spec.Sequence { return spec.Sequence{Epoch: epoch, Rev: rev} }
	b := NewBook("", netip.Addr{}, netip.Prefix{})
	steps := []struct {
		name string
		p    spec.Picture
		want bool
	}{
		{"a new set", spec.Picture{Ref: ref, Sequence: at(1, 5), Replicas: 1}, true},
		{"the same again", spec.Picture{Ref: ref, Sequence: at(1, 5), Replicas: 9}, false},
		{"an older one", spec.Picture{Ref: ref, Sequence: at(1, 4), Replicas: 9}, false},
		{"a newer one", spec.Picture{Ref: ref, Sequence: at(1, 6), Replicas: 2}, true},
		{"a later epoch has a lower revision", spec.Picture{Ref: ref, Sequence: at(2, 1), Replicas: 3}, true},
		{"the old epoch does not return", spec.Picture{Ref: ref, Sequence: at(1, 99), Replicas: 9}, false},
		{"it is gone", spec.Picture{Ref: ref, Sequence: at(2, 2), Gone: true}, true},
		{"a late picture does not bring it back", spec.Picture{Ref: ref, Sequence: at(2, 1), Replicas: 9}, false},
	}
	for _, s := range steps {
		if got := b.Put(s.p); got != s.want {
			t.Errorf("%s: changed %v, want %v", s.name, got, s.want)
		}
	}
	other := spec.Picture{Ref: spec.SetRef{Namespace: "default", Name: "other"}, Sequence: at(2, 1)}
	if !b.PutAll(at(2, 1), []spec.Picture{other}) {
		t.Error("a list with an unknown set changed nothing")
	}
	if s := b.Snapshot(); len(s.Pictures) != 2 || s.Sequence != at(2, 2) {
		t.Errorf("an older list made a set forgotten: %+v", s)
	}
	if !b.PutAll(at(2, 3), []spec.Picture{other}) || b.PutAll(at(2, 3), []spec.Picture{other}) {
		t.Error("want a change by the first list only")
	}
	s := b.Snapshot()
	if len(s.Pictures) != 1 || s.Pictures[0].Ref != other.Ref || s.Sequence != at(2, 3) {
		t.Errorf("got %+v, want only the listed set, at 2/3", s)
	}
}
