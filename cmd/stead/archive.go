package main

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/stead-project/stead/spec/scalar"
)

// pack writes a local file or directory as an archive in which it has this name. What is neither
// a file, a directory nor a symbolic link is left out with a warning.
func pack(out io.Writer, local, name string, errOut io.Writer) error {
	archive := tar.NewWriter(out)
	err := filepath.WalkDir(local, func(at string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		below, err := filepath.Rel(local, at)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		return packOne(archive, info, at, path.Join(name, filepath.ToSlash(below)), errOut)
	})
	return errors.Join(err, archive.Close())
}

func packOne(archive *tar.Writer, info fs.FileInfo, at, name string, errOut io.Writer) error {
	link := ""
	switch mode := info.Mode(); {
	case mode&fs.ModeSymlink != 0:
		target, err := os.Readlink(at)
		if err != nil {
			return err
		}
		link = target
	case !mode.IsRegular() && !mode.IsDir():
		fmt.Fprintf(errOut, "warning: %s is left out: it is not a file, a directory or a link\n", scalar.Plain(at))
		return nil
	}
	head, err := tar.FileInfoHeader(info, link)
	if err != nil {
		return err
	}
	head.Name, head.Uid, head.Gid, head.Uname, head.Gname = name, 0, 0, "", ""
	if info.IsDir() {
		head.Name += "/"
	}
	if err := archive.WriteHeader(head); err != nil || !info.Mode().IsRegular() {
		return err
	}
	f, err := os.Open(at)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(archive, f)
	return err
}

// unpacker writes an archive that a member sent below root, and nowhere else: the member is not
// trusted.
type unpacker struct {
	root     *os.Root
	from, to string // the name in the archive, and here
	errOut   io.Writer
}

func (u unpacker) unpack(in io.Reader) error {
	archive, found := tar.NewReader(in), false
	for {
		head, err := archive.Next()
		switch {
		case errors.Is(err, io.EOF):
			_, err := io.Copy(io.Discard, in) // padding: or tar would fail to write it
			if err == nil && !found {
				err = errors.New("the container's tar sent nothing")
			}
			return err
		case err != nil:
			return fmt.Errorf("read the container's archive: %w", err)
		}
		name, ok := u.place(head.Name)
		if !ok {
			return fmt.Errorf("the container's archive names %q, which was not asked for", head.Name)
		}
		found = true
		if err := u.entry(archive, head, name); err != nil {
			return err
		}
	}
}

// place is where an entry is written; false: it is not below what was asked for.
func (u unpacker) place(name string) (string, bool) {
	name = path.Clean(name)
	if u.from == "." {
		return path.Join(u.to, name), filepath.IsLocal(name)
	}
	rest, ok := strings.CutPrefix(name, u.from)
	if !ok || rest != "" && rest[0] != '/' || !filepath.IsLocal(name) {
		return "", false
	}
	return path.Join(u.to, rest), true
}

func (u unpacker) entry(archive *tar.Reader, head *tar.Header, name string) error {
	mode := fs.FileMode(head.Mode) & fs.ModePerm // neither setuid nor sticky
	switch head.Typeflag {
	case tar.TypeDir:
		return u.root.MkdirAll(name, mode|0o700)
	case tar.TypeReg:
		if dir := path.Dir(name); dir != "." {
			if err := u.root.MkdirAll(dir, 0o755); err != nil {
				return err
			}
		}
		f, err := u.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode|0o600)
		if err != nil {
			return err
		}
		_, err = io.Copy(f, archive)
		return errors.Join(err, f.Close())
	}
	fmt.Fprintf(u.errOut, "warning: %s is left out: it is not a file or a directory\n", scalar.Plain(head.Name))
	return nil
}
