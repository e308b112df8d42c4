package dispatch

import (
	"testing"

	"github.com/stead-project/stead/proto/wire"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
	"github.com/stead-project/stead/store"
)

func TestAConfigMapThatALifeNamesIsToldAsItIs(t *testing.T) {
	r := newStill(t)
	r.begin()
	template := testTemplate()
	template.Spec.Containers[0].EnvFrom = []spec.EnvFromSource{{ConfigMapRef: &spec.NameRef{Name: "conf"}}}
	r.Record(store.RevisionKey(refDB, "r1"), records.Revision{Ref: refDB, SetUID: "u1", Hash: "r1", Number: 1, Template: template})
	h := r.hand(n1)
	told := func() []records.Files {
		files, err := wire.ToDocuments[records.Files](h.tells().files.GetFilesJson())
		if err != nil {
			t.Fatal(err)
		}
		return files
	}
	conf := records.ConfigRecord{Meta: records.Meta{Namespace: "default", Name: "conf"}, Files: map[string]scalar.Bytes{"a.conf": []byte("x=1")}}
	if got := told(); len(got) != 1 || got[0].Kind != KindConfigMap || got[0].Name != "conf" || !got[0].Absent {
		t.Errorf("before it exists: %+v", got)
	}
	r.Record(store.ConfigKey("default", "conf"), conf)
	if got := told(); len(got) != 1 || got[0].Absent || string(got[0].Content["a.conf"]) != "x=1" {
		t.Errorf("when it exists: %+v", got)
	}
	if got := told(); len(got) != 0 {
		t.Errorf("nothing changed: %+v", got)
	}
	conf.Files["a.conf"] = []byte("x=2")
	r.Record(store.ConfigKey("default", "conf"), conf)
	if got := told(); len(got) != 1 || string(got[0].Content["a.conf"]) != "x=2" {
		t.Errorf("when it changed: %+v", got)
	}
	r.Commit(store.Del(store.ConfigKey("default", "conf")))
	if got := told(); len(got) != 1 || !got[0].Absent || len(got[0].Content) != 0 {
		t.Errorf("when it is gone: %+v", got)
	}
}
