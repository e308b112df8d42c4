package host

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
)

func TestWhichProgramMakesContainers(t *testing.T) {
	there := func(name string) (string, error) { return "/usr/bin/" + name, nil }
	absent := func(string) (string, error) { return "", fs.ErrNotExist }
	for _, c := range []struct {
		option  string
		unified bool
		find    func(string) (string, error)
		want    string
		refused string // what the refusal says; "": it is not refused
	}{
		{"", true, there, "", ""},
		{"runc", true, there, "", ""},
		{"crun", true, there, "/usr/bin/crun", ""},
		{"crun", true, absent, "", "install crun"},
		{"crun", false, there, "", "cgroup v1"},
		{"auto", true, there, "/usr/bin/crun", ""},
		{"auto", true, absent, "", ""},
		{"auto", false, there, "", ""},
		{"youki", true, there, "", "write runc, crun or auto"},
	} {
		o := Options{OCIRuntime: c.option}
		got, err := o.ociRuntime(c.unified, c.find)
		_, wrong := errors.AsType[OptionError](err)
		if got != c.want || wrong != (c.refused != "") || wrong && !strings.Contains(err.Error(), c.refused) {
			t.Errorf("%q, cgroup v2 alone: %v: %q, %v; want %q, refused: %q", c.option, c.unified, got, err, c.want, c.refused)
		}
	}
}
