package files

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/internal/durable"
	"github.com/stead-project/stead/internal/wrap"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// Put replaces dir/name atomically: a reader sees the old content or the new one.
// It is not synced: it is for tmpfs, and for what is written again after a power cut.
// The same content is not written again.
func Put(dir, name string, content []byte, mode os.FileMode) error {
	target := filepath.Join(dir, name)
	if old, err := os.ReadFile(target); err == nil && bytes.Equal(old, content) {
		return nil
	}
	return durable.PutUnsyncedIn(target, content, mode, 0o755)
}

// WriteMember writes what is constant for the life: member.json, hosts, hostname, and
// resolv.conf, but for what of it the host says.
func WriteMember(p Place, l *records.Life, n Node) error {
	member, err := Member(l)
	if err != nil {
		return err
	}
	if err := makeSelf(p); err != nil {
		return err
	}
	if err := Put(p.Stead, MemberFile, member, 0o444); err != nil {
		return err
	}
	if err := writeForgotten(p, l.Forgotten); err != nil {
		return err
	}
	host, err := hostResolver(l, n)
	if err != nil {
		return err
	}
	names, err := hostNames(l, n)
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{"hosts": Hosts(l, names), "resolv.conf": Resolv(l, n, host), "hostname": Hostname(l)} {
		if err := Put(p.Etc, name, content, 0o444); err != nil {
			return err
		}
	}
	return nil
}

// makeSelf makes the directory on which containers mount their own. A runtime gives that the mode of this one, and every
// user of a container is to write there.
func makeSelf(p Place) error {
	dir := filepath.Join(p.Stead, filepath.Base(SelfDir))
	err := os.Mkdir(dir, 0o755)
	if errors.Is(err, fs.ErrNotExist) {
		err = os.MkdirAll(dir, 0o755)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return os.Chmod(dir, 0o777)
}

// show writes a file of /run/stead, or removes it when content is nil.
func show(p Place, name string, content []byte) error {
	if content == nil {
		return absent(filepath.Join(p.Stead, name))
	}
	return Put(p.Stead, name, content, 0o444)
}

// writeForgotten lets the member read that its peers have forgotten its life last; zero: they have not.
func writeForgotten(p Place, last spec.Token) error {
	var content []byte
	if !last.IsZero() {
		content = []byte(last.String() + "\n")
	}
	return show(p, ForgottenFile, content)
}

// WriteVolumeNew writes volume-new, which may change between two starts of a container
// (see VolumeNew), or removes it when content is nil.
func WriteVolumeNew(p Place, content []byte) error { return show(p, VolumeNewFile, content) }

// WriteTermination lets the member read why it is about to be asked to stop; "": it is not.
func WriteTermination(p Place, reason records.Reason) error {
	var content []byte
	if reason != "" {
		content = []byte(string(reason) + "\n")
	}
	return show(p, TerminationFile, content)
}

// Clean removes all files of a member but bootstrapped's fact, which a later life
// gets again from its set's snapshot.
func Clean(p Place) error {
	return errors.Join(os.RemoveAll(p.Stead), os.RemoveAll(p.Etc), os.RemoveAll(p.Media))
}

// WriteMedia makes dir show m the way Kubernetes does: files are links through
// "..data" to a directory that is swapped as a whole. With a group the files
// belong to it and it may read them. Nothing is touched when nothing changed.
func WriteMedia(dir string, m Media, group *int64) (err error) {
	defer wrap.Error(&err, "write volume %s", m.Name)
	version := ".." + m.digest(group)
	if now, err := os.Readlink(filepath.Join(dir, "..data")); err == nil && now == version {
		return tidy(dir, version, m)
	}
	if err := m.fill(dir, version, group); err != nil {
		return err
	}
	link := filepath.Join(dir, "..data.new")
	if err := errors.Join(absent(link), os.Symlink(version, link)); err != nil {
		return err
	}
	if err := os.Rename(link, filepath.Join(dir, "..data")); err != nil {
		return err
	}
	return tidy(dir, version, m)
}

func (m Media) digest(group *int64) string {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(m.Files)) {
		f := m.Files[name]
		fmt.Fprintf(h, "%q %o %q\n", name, f.Mode, []byte(f.Content))
	}
	if group != nil {
		fmt.Fprintf(h, "group %d", *group)
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:8])
}

// fill makes the directory of one version, complete before it gets its name.
func (m Media) fill(dir, version string, group *int64) error {
	next := filepath.Join(dir, "..new")
	if err := errors.Join(os.RemoveAll(next), os.RemoveAll(filepath.Join(dir, version))); err != nil {
		return err
	}
	if err := os.MkdirAll(next, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(next)
	if err != nil {
		return err
	}
	defer root.Close()
	for name, f := range m.Files {
		if err := fillFile(root, name, f, group); err != nil {
			return err
		}
	}
	return os.Rename(next, filepath.Join(dir, version))
}

func fillFile(root *os.Root, name string, f MediaFile, group *int64) error {
	if d := filepath.Dir(name); d != "." {
		if err := root.MkdirAll(d, 0o755); err != nil {
			return err
		}
	}
	mode := os.FileMode(f.Mode)
	if group != nil {
		mode |= 0o440
	}
	if err := root.WriteFile(name, f.Content, 0o600); err != nil {
		return err
	}
	if group != nil {
		if err := root.Chown(name, -1, int(*group)); err != nil {
			return err
		}
	}
	return root.Chmod(name, mode)
}

// tidy makes the links of the version in use and removes all others.
func tidy(dir, version string, m Media) error {
	want := map[string]bool{"..data": true, version: true}
	for name := range m.Files {
		top, _, _ := strings.Cut(name, "/")
		want[top] = true
		if err := os.Symlink(filepath.Join("..data", top), filepath.Join(dir, top)); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	found, err := os.ReadDir(dir)
	errs := []error{err}
	for _, e := range found {
		if !want[e.Name()] {
			errs = append(errs, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	return errors.Join(errs...)
}

// absent removes a file that may not be there; os.Remove would try it as a directory, too.
func absent(path string) error {
	if err := unix.Unlink(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return &fs.PathError{Op: "remove", Path: path, Err: err}
	}
	return nil
}
