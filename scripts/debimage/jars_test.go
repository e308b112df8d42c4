package main

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestAJarCountsOnlyWithItsSum(t *testing.T) {
	asked := 0
	served := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		if r.URL.Path != "/org/some/lib/1.2/lib-1.2-linux.jar" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		_, _ = w.Write([]byte("classes"))
	}))
	defer served.Close()
	was := central
	central = served.URL
	defer func() { central = was }()

	folder := t.TempDir()
	add := func(name string, sum [32]byte) (Tree, error) {
		l, err := ParseList("lists/db.list", fmt.Sprintf("# jars\njar %s %x\n", name, sum))
		if err != nil {
			t.Fatal(err)
		}
		tree := Tree{}
		return tree, tree.AddJars(l, folder)
	}
	right := sha256.Sum256([]byte("classes"))
	for range 2 {
		tree, err := add("org.some:lib:1.2:linux", right)
		if err != nil || string(tree["usr/share/java/db/lib-1.2-linux.jar"].Content) != "classes" {
			t.Fatalf("got %v, %v", tree, err)
		}
	}
	if asked != 1 {
		t.Errorf("a jar that is kept was asked for %d times", asked)
	}
	if _, err := add("org.some:lib:1.2:linux", sha256.Sum256([]byte("others"))); err == nil || !strings.Contains(err.Error(), "lists/db.list:2: ") || !strings.Contains(err.Error(), "SHA-256") {
		t.Errorf("with another sum: %v", err)
	}
	if _, err := add("org.some:lib:1.3", right); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("one that is not there: %v", err)
	}
	for _, bad := range []string{"jar lib " + strings.Repeat("0", 64), "jar a:b:c 123", "jar a:../b:c " + strings.Repeat("0", 64)} {
		if _, err := ParseList("l", bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}
