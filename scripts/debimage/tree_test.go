package main

import (
	"archive/tar"
	"bytes"
	"io"
	"strings"
	"testing"
)

// pack makes the tar stream of a package: dpkg-deb's names begin with "./".
func pack(t *testing.T, headers ...tar.Header) io.Reader {
	t.Helper()
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, h := range headers {
		content := []byte("content of " + h.Name)
		if h.Typeflag == tar.TypeReg {
			h.Size = int64(len(content))
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			if _, err := w.Write(content); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &buf
}

func reg(name string) tar.Header { return tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o755} }

func symlink(name, to string) tar.Header {
	return tar.Header{Name: name, Typeflag: tar.TypeSymlink, Linkname: to, Mode: 0o777}
}

func TestPathsAreMergedBelowUsr(t *testing.T) {
	tree := Tree{}
	err := tree.AddTar("p", pack(t,
		reg("./bin/bash"), reg("./usr/bin/env"), reg("./lib/x86_64-linux-gnu/libc.so.6"),
		symlink("./lib64/ld.so", "/lib/x86_64-linux-gnu/ld.so"),
		symlink("./lib/libfoo.so", "../etc/foo"), symlink("./usr/lib/libbar.so", "libbar.so.1"),
		tar.Header{Name: "./usr/bin/hard", Typeflag: tar.TypeLink, Linkname: "./bin/bash"}))
	if err != nil {
		t.Fatal(err)
	}
	tree.AddSkeleton()
	for name, link := range map[string]string{
		"bin": "usr/bin", "lib": "usr/lib", "lib64": "usr/lib64", "sbin": "usr/sbin",
		"usr/lib64/ld.so":                    "/lib/x86_64-linux-gnu/ld.so",
		"usr/lib/libfoo.so":                  "/etc/foo", // relative to where it came from
		"usr/lib/libbar.so":                  "libbar.so.1",
		"usr/bin/sh":                         "dash",
		"usr/bin/bash":                       "",
		"usr/bin/env":                        "",
		"tmp":                                "",
		"etc/nsswitch.conf":                  "",
		"usr/bin/awk":                        "mawk",
		"usr/lib/x86_64-linux-gnu/libc.so.6": "",
	} {
		e, ok := tree[name]
		if !ok || e.Link != link {
			t.Errorf("%s: there %v, link %q, want %q", name, ok, e.Link, link)
		}
	}
	if got := string(tree["usr/bin/hard"].Content); got != "content of ./bin/bash" {
		t.Errorf("the hard link holds %q", got)
	}
	for name := range tree {
		if strings.HasPrefix(name, "bin/") || strings.HasPrefix(name, "lib/") {
			t.Errorf("%s lies below a link", name)
		}
	}
	if mode := tree["tmp"].Mode; mode != 0o1777 {
		t.Errorf("tmp has mode %o", mode)
	}
}

func TestDocumentationIsDroppedAndCopyrightStays(t *testing.T) {
	tree := Tree{}
	err := tree.AddTar("p", pack(t, reg("./usr/share/doc/p/changelog.gz"), reg("./usr/share/doc/p/copyright"),
		reg("./usr/share/man/man1/p.1.gz"), reg("./lib/systemd/system/p.service"), reg("./usr/share/manual")))
	if err != nil {
		t.Fatal(err)
	}
	if len(tree) != 2 || tree["usr/share/doc/p/copyright"].Type == 0 || tree["usr/share/manual"].Type == 0 {
		t.Errorf("left: %v", tree)
	}
}

func TestWhatCannotBeRightIsRefused(t *testing.T) {
	cases := []struct {
		name    string
		headers []tar.Header
		want    string
	}{
		{"two packages hold one file", []tar.Header{reg("./usr/bin/x"), reg("./bin/x")}, "hold usr/bin/x"},
		{"a hard link to nothing", []tar.Header{{Name: "./a", Typeflag: tar.TypeLink, Linkname: "./b"}}, "links to ./b"},
		{"a device", []tar.Header{{Name: "./dev/x", Typeflag: tar.TypeChar}}, "unknown type"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			err := Tree{}.AddTar("p", pack(t, c.headers...))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want %q", err, c.want)
			}
		})
	}
	if err := (Tree{}).AddTar("p", strings.NewReader("no tar at all, but long enough to be read as one"+strings.Repeat("x", 600))); err == nil {
		t.Error("garbage was taken for a tar")
	}
}

func TestALayerIsTheSameWhateverTheOrder(t *testing.T) {
	layer := func(headers ...tar.Header) []byte {
		tree := Tree{}
		if err := tree.AddTar("p", pack(t, headers...)); err != nil {
			t.Fatal(err)
		}
		tree.AddSkeleton()
		b, err := tree.Tar()
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	a, b := layer(reg("./a"), reg("./b"), reg("./c")), layer(reg("./c"), reg("./a"), reg("./b"))
	if !bytes.Equal(a, b) {
		t.Error("the order of the packages shows in the layer")
	}
	if bytes.Equal(a, layer(reg("./a"), reg("./b"))) {
		t.Error("a missing file does not show in the layer")
	}
}

func TestUsersOfTheTopLayerReplaceThoseBelow(t *testing.T) {
	tree := Tree{}
	tree.AddUsers([]User{{Name: "etcd", UID: 999}})
	want := "root:x:0:0:root:/root:/bin/sh\netcd:x:999:999::/:/usr/sbin/nologin\nnobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n"
	if got := string(tree["etc/passwd"].Content); got != want {
		t.Errorf("passwd: %q, want %q", got, want)
	}
}
