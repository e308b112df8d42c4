package spec

import "testing"

func TestHooksThatSayWhatIsSoAnywayHashAsAbsent(t *testing.T) {
	base := plain()
	none := Clone(base)
	none.Spec.Containers[0].Lifecycle = &Lifecycle{}
	if !SameTemplate(base, none) {
		t.Error("an empty lifecycle is not the same as none")
	}
	short, long := Clone(base), Clone(base)
	short.Spec.Containers[0].Lifecycle = &Lifecycle{PreStop: &Hook{HTTPGet: &HTTPGet{}}}
	long.Spec.Containers[0].Lifecycle = &Lifecycle{PreStop: &Hook{HTTPGet: &HTTPGet{Path: "/", Scheme: "HTTP"}}}
	if !SameTemplate(short, long) || HashTemplate(short) == HashTemplate(base) {
		t.Error("the defaults of a hook's httpGet change the hash, or the hook does not")
	}
	s := SetSpec{Template: short}
	Default(&s)
	if got := s.Template.Spec.Containers[0].Lifecycle.PreStop.HTTPGet; got.Path != "/" || got.Scheme != "HTTP" {
		t.Errorf("got %+v", got)
	}
}
