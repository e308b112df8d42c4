package host

import (
	"errors"
	"strings"
	"testing"
)

func TestOnlyAClassOfThisHostAloneCanBeSized(t *testing.T) {
	classes := map[string]string{"ssd": "/mnt/ssd", "nfs": "/mnt/nfs/stead"}
	for _, c := range []struct {
		sized []string
		wrong string
	}{
		{nil, ""},
		{[]string{"ssd", "local"}, ""},
		{[]string{"gold"}, "--sized-class gold: name the class"},
		{[]string{"ssd", "nfs"}, "--sized-class nfs: it is a --shared-class"},
	} {
		o := Options{Node: "n1", Classes: classes, Shared: []string{"nfs"}, Sized: c.sized}
		err := o.Check()
		if _, is := errors.AsType[OptionError](err); c.wrong == "" && err != nil || c.wrong != "" && (!is || !strings.Contains(err.Error(), c.wrong)) {
			t.Errorf("%v: got %v, want %q", c.sized, err, c.wrong)
		}
	}
}
