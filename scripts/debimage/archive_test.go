package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go/v1"
)

func TestAnArchiveNamesItsImageAndHoldsItsLayers(t *testing.T) {
	m := Image{Name: "stead.local/x:1", Env: []string{"A=b"}, Entrypoint: "/bin/x", Layers: [][]byte{[]byte("lower"), []byte("upper")}}
	path := filepath.Join(t.TempDir(), "x.tar")
	if err := m.WriteFile(path); err != nil {
		t.Fatal(err)
	}
	first, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for r := tar.NewReader(bytes.NewReader(first)); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[h.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
	read := func(d v1.Descriptor, into any) {
		t.Helper()
		b := files["blobs/sha256/"+d.Digest.Encoded()]
		if int64(len(b)) != d.Size || digest.FromBytes(b) != d.Digest {
			t.Fatalf("blob %s of %d bytes: found %d", d.Digest, d.Size, len(b))
		}
		if into != nil {
			if err := json.Unmarshal(b, into); err != nil {
				t.Fatal(err)
			}
		}
	}
	var top v1.Index
	if err := json.Unmarshal(files["index.json"], &top); err != nil || len(top.Manifests) != 1 {
		t.Fatalf("index: %v %+v", err, top)
	}
	if got := top.Manifests[0].Annotations["io.containerd.image.name"]; got != m.Name {
		t.Errorf("named %q, want %q", got, m.Name)
	}
	var man v1.Manifest
	read(top.Manifests[0], &man)
	var conf v1.Image
	read(man.Config, &conf)
	if len(man.Layers) != 2 || len(conf.RootFS.DiffIDs) != 2 {
		t.Fatalf("%d layers, %d diff ids, want 2", len(man.Layers), len(conf.RootFS.DiffIDs))
	}
	env := []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "A=b"}
	if !slices.Equal(conf.Config.Env, env) || !slices.Equal(conf.Config.Entrypoint, []string{"/bin/x"}) {
		t.Errorf("the image runs %v with %v", conf.Config.Entrypoint, conf.Config.Env)
	}
	if own := (Image{Env: []string{"PATH=/x"}}).env(); !slices.Equal(own, []string{"PATH=/x"}) {
		t.Errorf("a PATH of its own becomes %v", own)
	}
	for i, l := range man.Layers {
		read(l, nil)
		if conf.RootFS.DiffIDs[i] != l.Digest {
			t.Errorf("layer %d: diff id %s, digest %s", i, conf.RootFS.DiffIDs[i], l.Digest)
		}
	}

	if err := m.WriteFile(path); err != nil {
		t.Fatal(err)
	}
	second, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(first, second) {
		t.Errorf("written twice, the archives differ (%v)", err)
	}
	if left, err := filepath.Glob(path + ".*"); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

func TestListsAreReadStrictly(t *testing.T) {
	good := "# head\nimage a/b:1\nfrom base # below\nuser u 999\nenv PATH=/x\nentrypoint /bin/x\nlib-x+1=1:2.3-4~deb12u1\n"
	l, err := ParseList("x.list", good)
	if err != nil {
		t.Fatal(err)
	}
	want := Package{Name: "lib-x+1", Version: "1:2.3-4~deb12u1", Line: 7}
	if l.Image != "a/b:1" || l.From != "base" || len(l.Users) != 1 || len(l.Env) != 1 || l.Entrypoint != "/bin/x" || len(l.Packages) != 1 || l.Packages[0] != want {
		t.Errorf("got %+v", l)
	}
	if got := want.file(); got != "lib-x+1_1%3a2.3-4~deb12u1_*.deb" {
		t.Errorf("file %q", got)
	}
	for _, bad := range []string{"bash", "bash=", "bash=1 x", "user x", "user root:x 0", "from ../x", "env X", "entrypoint x", "Bash=1", "--x=1"} {
		if _, err := ParseList("x.list", "\n"+bad+"\n"); err == nil || !strings.HasPrefix(err.Error(), "x.list:2: ") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestAListMayNotBuildOnItself(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{"a": "image a\nfrom b\n", "b": "from a\n"} {
		if err := os.WriteFile(filepath.Join(folder, name+".list"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := ReadChain(folder, "a"); err == nil || !strings.Contains(err.Error(), "builds on itself") {
		t.Errorf("got %v", err)
	}
}

func TestTheListsOfTheRepositoryAreWellFormed(t *testing.T) {
	lists, err := filepath.Glob("../images/*.list")
	if err != nil || len(lists) < 3 {
		t.Fatalf("lists: %v, %v", lists, err)
	}
	for _, path := range lists {
		if _, err := ReadChain("../images", strings.TrimSuffix(filepath.Base(path), ".list")); err != nil {
			t.Error(err)
		}
	}
}
