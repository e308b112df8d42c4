package main

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"path"
	"slices"
	"strings"
	"time"
)

// Tree is the files of one layer by path, without a leading slash.
type Tree map[string]Entry

// Entry is one file, directory or link.
type Entry struct {
	Type     byte // tar.TypeReg, TypeDir, TypeSymlink
	Mode     int64
	UID, GID int
	Link     string
	Content  []byte
	From     string // the package, for messages
}

// epoch is the time of every file: images made on two days are the same.
var epoch = time.Unix(0, 0).UTC()

// AddPackage adds what a .deb file holds.
func (t Tree) AddPackage(deb string) error {
	cmd := exec.Command("dpkg-deb", "--fsys-tarfile", deb)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("dpkg-deb: %w", err)
	}
	addErr := t.AddTar(path.Base(deb), out)
	_, _ = io.Copy(io.Discard, out)
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("unpack %s: %w; delete the file and try again", deb, err)
	}
	return addErr
}

// AddTar adds the entries of a package's tar stream, as they would lie on a
// merged-/usr system and without documentation. Hard links become copies.
func (t Tree) AddTar(from string, r io.Reader) error {
	for in := tar.NewReader(r); ; {
		h, err := in.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", from, err)
		}
		old := path.Clean("/" + h.Name)[1:]
		name := merge(old)
		if name == "" || dropped(name) {
			continue
		}
		e := Entry{Type: h.Typeflag, Mode: h.Mode & 0o7777, UID: h.Uid, GID: h.Gid, From: from}
		switch h.Typeflag {
		case tar.TypeDir:
		case tar.TypeSymlink:
			e.Link = h.Linkname
			if name != old && !path.IsAbs(e.Link) { // it moved: what it points to did not
				e.Link = path.Join("/", path.Dir(old), e.Link)
			}
		case tar.TypeLink:
			target, ok := t[merge(path.Clean("/" + h.Linkname)[1:])]
			if !ok || target.Type != tar.TypeReg {
				return fmt.Errorf("%s: %s links to %s, which is not a file before it", from, name, h.Linkname)
			}
			e = target
		case tar.TypeReg:
			if e.Content, err = io.ReadAll(in); err != nil {
				return fmt.Errorf("read %s: %w", from, err)
			}
		default:
			return fmt.Errorf("%s: %s is of the unknown type %c", from, name, h.Typeflag)
		}
		if err := t.add(name, e); err != nil {
			return err
		}
	}
}

// add refuses two packages that disagree about a path.
func (t Tree) add(name string, e Entry) error {
	was, ok := t[name]
	if ok && (was.Type != tar.TypeDir || e.Type != tar.TypeDir) {
		return fmt.Errorf("both %s and %s hold %s", was.From, e.From, name)
	}
	t[name] = e
	return nil
}

// merge moves /bin, /sbin and /lib* below /usr, where Debian's symbolic links
// would lead: an entry below a link would replace the link of the layer beneath.
func merge(name string) string {
	first, rest, below := strings.Cut(name, "/")
	switch first {
	case "bin", "sbin", "lib", "lib32", "lib64", "libx32":
		if !below {
			return "usr/" + first
		}
		return "usr/" + first + "/" + rest
	}
	return name
}

// Folders of no use in a container; copyright files stay, for images are copies.
var useless = []string{
	"usr/share/man", "usr/share/locale", "usr/share/info", "usr/share/lintian",
	"usr/share/bug", "usr/share/bash-completion", "usr/share/menu", "usr/share/doc-base",
	"usr/lib/systemd", "etc/systemd", "etc/init.d", "etc/cron.d", "etc/cron.daily",
	"etc/logrotate.d", "etc/default",
}

func dropped(name string) bool {
	if slices.ContainsFunc(useless, func(u string) bool { return name == u || strings.HasPrefix(name, u+"/") }) {
		return true
	}
	if below, ok := strings.CutPrefix(name, "usr/share/doc/"); ok {
		return path.Base(below) != "copyright"
	}
	return false
}

// AddSkeleton adds what maintainer scripts would have made: the links of a merged
// /usr, sh and awk, users, name service, empty folders.
func (t Tree) AddSkeleton() {
	for _, d := range []string{"bin", "sbin", "lib", "lib64"} {
		t.absent("usr/"+d, Entry{Type: tar.TypeDir, Mode: 0o755})
		t[d] = Entry{Type: tar.TypeSymlink, Mode: 0o777, Link: "usr/" + d}
	}
	t.absent("usr/bin/sh", Entry{Type: tar.TypeSymlink, Mode: 0o777, Link: "dash"})
	t.absent("usr/bin/awk", Entry{Type: tar.TypeSymlink, Mode: 0o777, Link: "mawk"})
	for _, d := range []string{"dev", "etc", "home", "proc", "run", "sys", "usr", "var", "var/lib"} {
		t.absent(d, Entry{Type: tar.TypeDir, Mode: 0o755})
	}
	t["root"] = Entry{Type: tar.TypeDir, Mode: 0o700}
	t["tmp"] = Entry{Type: tar.TypeDir, Mode: 0o1777}
	t["var/tmp"] = Entry{Type: tar.TypeDir, Mode: 0o1777}
	t["etc/nsswitch.conf"] = file("passwd: files\ngroup: files\nhosts: files dns\nservices: files\n")
	t.AddUsers(nil)
}

// AddUsers writes /etc/passwd and /etc/group with root, nobody and users.
func (t Tree) AddUsers(users []User) {
	passwd, group := "root:x:0:0:root:/root:/bin/sh\n", "root:x:0:\n"
	for _, u := range users {
		passwd += fmt.Sprintf("%s:x:%d:%d::/:/usr/sbin/nologin\n", u.Name, u.UID, u.UID)
		group += fmt.Sprintf("%s:x:%d:\n", u.Name, u.UID)
	}
	t["etc/passwd"] = file(passwd + "nobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n")
	t["etc/group"] = file(group + "nogroup:x:65534:\n")
	t.absent("etc", Entry{Type: tar.TypeDir, Mode: 0o755})
}

func (t Tree) absent(name string, e Entry) {
	if _, ok := t[name]; !ok {
		t[name] = e
	}
}

func file(content string) Entry {
	return Entry{Type: tar.TypeReg, Mode: 0o644, Content: []byte(content)}
}

// Tar is the tree as an archive.
func (t Tree) Tar() ([]byte, error) {
	var buf bytes.Buffer
	err := t.write(&buf)
	return buf.Bytes(), err
}

// write writes the tree sorted by path, with fixed times and numeric owners only.
func (t Tree) write(w io.Writer) error {
	out := tar.NewWriter(w)
	for _, name := range slices.Sorted(maps.Keys(t)) {
		e := t[name]
		h := &tar.Header{
			Name: name, Typeflag: e.Type, Mode: e.Mode, Uid: e.UID, Gid: e.GID,
			Linkname: e.Link, Size: int64(len(e.Content)), ModTime: epoch,
		}
		if e.Type == tar.TypeDir {
			h.Name += "/"
		}
		if err := out.WriteHeader(h); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
		if _, err := out.Write(e.Content); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	return out.Close()
}
