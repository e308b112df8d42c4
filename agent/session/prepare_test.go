package session

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
)

func TestWhatIsPreparedIsSaidOnceForEachChange(t *testing.T) {
	notified := 0
	p := NewPreparedImages(func() { notified++ })
	done := records.Prepared{Ref: spec.SetRef{Namespace: "default", Name: "db"}, Revision: "r2", Done: true}
	lacks := done
	lacks.Done, lacks.Cause, lacks.Message = false, causes.ImagePull, "no"
	says := func(want ...records.Prepared) {
		t.Helper()
		m, err := p.changed()
		if err != nil {
			t.Fatal(err)
		}
		if m == nil {
			t.Fatal("nothing is said")
		}
		var got []records.Prepared
		if err := json.Unmarshal(m.GetPrepared().GetPreparedJson(), &got); err != nil || !slices.Equal(got, want) {
			t.Fatalf("said is %+v, %v; want %+v", got, err, want)
		}
	}
	silent := func() {
		t.Helper()
		if m, err := p.changed(); m != nil || err != nil {
			t.Errorf("%v, %v; want no message", m, err)
		}
	}
	silent()
	p.Set([]records.Prepared{lacks})
	says(lacks)
	p.Set([]records.Prepared{lacks})
	silent()
	p.Set([]records.Prepared{done})
	p.Set([]records.Prepared{lacks}) // back before it was said
	silent()
	p.Set([]records.Prepared{done})
	if got := p.all(); !slices.Equal(got, []records.Prepared{done}) { // for the next session's hello
		t.Errorf("%+v", got)
	}
	silent()
	p.Set(nil)
	says()
	if notified == 0 {
		t.Error("nobody was notified")
	}
	var none *PreparedImages // an agent that does not prepare
	if m, err := none.changed(); m != nil || err != nil || none.all() != nil {
		t.Errorf("%v, %v, %v", m, err, none.all())
	}
}
