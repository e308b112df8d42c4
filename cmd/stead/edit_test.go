package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAnObjectIsEdited: with what the editor leaves behind, unless it is left as it was, is about
// something else, is refused, or was made from what somebody else has changed meanwhile.
func TestAnObjectIsEdited(t *testing.T) {
	c := newCluster(t, nil)
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv("KUBE_EDITOR", "")
	for _, file := range []string{"testdata/db.yaml", "testdata/files.yaml"} {
		if code, out := c.stead("apply", "-f", file, "--wait", "--timeout", "2m"); code != exitDone {
			t.Fatal(out)
		}
	}
	meanwhile := ""
	edit := func(editor string, args ...string) (int, string) {
		t.Helper()
		path := filepath.Join(t.TempDir(), "editor")
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+editor+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		t.Setenv("EDITOR", path)
		return c.stead(append([]string{"edit"}, args...)...)
	}
	for _, step := range []struct {
		editor string
		args   []string
		code   int
		want   []string
	}{
		{"sed -i s/db:1/db:2/ $1", []string{"sts", "db"}, exitDone, []string{"set default/db configured", "restarts db-2, db-1, db-0"}},
		{"true", []string{"set/db"}, exitDone, []string{"set default/db was not edited; nothing was changed"}},
		{"echo > $1", []string{"set/db"}, exitDone, []string{"nothing was changed"}},
		{"grep -q 'generation: 2' $1 && ! grep -q status: $1", []string{"set/db"}, exitDone, []string{"was not edited"}},
		{"sed -i s/x=1/x=2/ $1", []string{"cm", "conf"}, exitDone, []string{"configmap default/conf configured"}},
		{"sed -i 's/2379/2380/' $1", []string{"svc/db"}, exitDone, []string{"service default/db configured"}},
		{"sed -i 's/name: db/name: other/' $1", []string{"set/db"}, exitRefused, []string{"the text must be about set default/db only", "your text is kept in"}},
		{"sed -i 's/replicas: 3/replicas: many/' $1", []string{"set/db"}, exitRefused, []string{"replicas", "your text is kept in", "stead apply -f"}},
		{"echo kind: >> $1", []string{"set/db"}, exitRefused, []string{"your text is kept in"}},
		{"exit 1", []string{"set/db"}, exitRefused, []string{"set EDITOR to another one; nothing was changed"}},
		{"true", []string{"pod/db-0"}, exitUsage, []string{"edit its set"}},
		{"true", []string{"secret/pass"}, exitUsage, []string{"its values are not shown"}},
		{"true", []string{"set/nobody"}, exitRefused, []string{"there is no set nobody"}},
		{"true", []string{"db"}, exitUsage, []string{"an object is needed"}},
	} {
		code, out := edit(step.editor+meanwhile, step.args...)
		if code != step.code {
			t.Errorf("%s, edit %v: exit code %d, want %d", step.editor, step.args, code, step.code)
		}
		for _, want := range step.want {
			if !strings.Contains(out, want) {
				t.Errorf("%s, edit %v: no %q in\n%s", step.editor, step.args, want, out)
			}
		}
		if strings.Contains(out, "no effect") {
			t.Errorf("%s, edit %v: a warning about what was shown:\n%s", step.editor, step.args, out)
		}
	}
}

// TestAnEditDoesNotUndoThoseOfOthers: sets by the server's compare, the rest by a second look.
func TestAnEditDoesNotUndoThoseOfOthers(t *testing.T) {
	c := newCluster(t, nil)
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	t.Setenv("KUBE_EDITOR", "")
	for _, file := range []string{"testdata/db.yaml", "testdata/files.yaml"} {
		if code, out := c.stead("apply", "-f", file, "--wait", "--timeout", "2m"); code != exitDone {
			t.Fatal(out)
		}
	}
	// The editor waits until the other has changed the object.
	t.Setenv("EDITOR", "f() { sed -i 's/x=1/x=9/; s/replicas: 3/replicas: 1/' $1; touch "+dir+"/open; while test -e "+dir+"/open; do sleep 0.05; done; }; f")
	for target, other := range map[string][]string{"set/db": {"scale", "db", "--replicas", "4"}, "cm/conf": {"apply", "-f", "testdata/files-2.yaml"}} {
		type end struct {
			code int
			out  string
		}
		ended := make(chan end, 1)
		go func() {
			code, out := c.stead("edit", target)
			ended <- end{code, out}
		}()
		c.until("the editor is open", func() bool { _, err := os.Stat(dir + "/open"); return err == nil })
		if code, out := c.stead(other...); code != exitDone {
			t.Error(out)
		}
		os.Remove(dir + "/open")
		if got := <-ended; got.code != exitRefused || !strings.Contains(got.out, "your text is kept in") || !strings.Contains(got.out, "generation") {
			t.Errorf("%s: exit code %d\n%s", target, got.code, got.out)
		}
	}
}
