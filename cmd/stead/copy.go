package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/spec/scalar"
)

func copyCommand(c *cli) *cobra.Command {
	cp := copier{cli: c}
	cmd := &cobra.Command{
		Use:   "cp MEMBER:PATH LOCAL | LOCAL MEMBER:PATH",
		Short: "Copy files and directories between a member's container and this machine",
		Long: `Copy files and directories between a member's container and this machine, with the tar
program in the container's image. What exists is overwritten. A copy into an existing
directory keeps its name; otherwise it gets the name given. From a member, links and
devices are left out, and nothing is written outside of LOCAL; owners are not kept.`,
		Example: `  stead cp etcd-0:/var/lib/etcd/snap.db ./snap.db
  stead cp ./restore.sh etcd-0:/tmp/restore.sh
  stead cp -c main default/etcd-0:/etc/ ./etc-of-etcd-0`,
		Args: exactly(2, "a source and a destination, one of them as MEMBER:PATH"),
		RunE: func(cmd *cobra.Command, args []string) error {
			from, fromMember := parsePlace(args[0])
			to, toMember := parsePlace(args[1])
			if fromMember == toMember {
				return misuse("one of source and destination must be MEMBER:PATH, and the other one local")
			}
			cp.errOut = cmd.ErrOrStderr()
			if fromMember {
				return cp.fetch(cmd.Context(), from, to.path)
			}
			return cp.send(cmd.Context(), from.path, to)
		},
	}
	cmd.Flags().StringVarP(&cp.container, "container", "c", "", "the container (default: the first)")
	return cmd
}

// place is a file or directory, of a member or local.
type place struct {
	namespace, member, path string
}

// parsePlace reads PATH, MEMBER:PATH, NAMESPACE/MEMBER:PATH or pod/MEMBER:PATH. A local path with a
// colon is written as ./a:b.
func parsePlace(text string) (p place, member bool) {
	before, after, ok := strings.Cut(text, ":")
	if !ok || before == "" || after == "" || strings.HasPrefix(before, ".") || strings.HasPrefix(before, "/") {
		return place{path: text}, false
	}
	p = place{member: before, path: after}
	if first, name, slashed := strings.Cut(before, "/"); slashed {
		p.member = name
		if kind, err := parseKind(first); err != nil || kind != proto.KindMember {
			p.namespace = first
		}
	}
	return p, true
}

// copier is one use of the verb cp.
type copier struct {
	*cli
	container string
	errOut    io.Writer
}

// run runs a command in the container, and returns what it printed as an error.
func (c *copier) run(ctx context.Context, at place, in io.Reader, out io.Writer, command ...string) error {
	var complaint beginning
	x := execution{in: in, out: out, errOut: &complaint, taken: make(chan struct{}, 1)}
	start := &proto.ExecStart{Namespace: c.namespace, Member: at.member, Container: c.container, Command: command, Stdin: in != nil}
	if at.namespace != "" {
		start.Namespace = at.namespace
	}
	err := x.run(ctx, c.control, start)
	if code, ok := errors.AsType[exitCode](err); ok {
		return fmt.Errorf("%s in %s: %w: %s", command[0], at.member, failed{code}, plainLines(strings.TrimSpace(string(complaint))))
	}
	return err
}

// beginning keeps the first 4 KiB of what a command complains about.
type beginning []byte

// Write implements io.Writer.
func (b *beginning) Write(p []byte) (int, error) {
	*b = append(*b, p[:min(len(p), 4<<10-len(*b))]...)
	return len(p), nil
}

// failed is the exit code of a command that is not that of stead.
type failed struct{ code exitCode }

func (f failed) Error() string { return f.code.Error() }

// fetch copies a file or directory of a member to this machine.
func (c *copier) fetch(ctx context.Context, from place, local string) error {
	source := path.Clean(from.path)
	name := path.Base(source)
	if name == "/" {
		name = "."
	}
	parent, target := filepath.Split(filepath.Clean(local))
	if info, err := os.Stat(local); err == nil && info.IsDir() {
		parent, target = local, name
	} else if strings.HasSuffix(local, "/") && err != nil {
		return fmt.Errorf("the directory %s does not exist", local)
	}
	if parent == "" {
		parent = "."
	}
	root, err := os.OpenRoot(parent)
	if err != nil {
		return err
	}
	defer root.Close()
	in, out := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := c.run(ctx, from, nil, out, "tar", "cf", "-", "-C", path.Dir(source), "./"+name)
		out.CloseWithError(err) // nil: the end
		ended <- err
	}()
	u := unpacker{root: root, from: name, to: target, errOut: c.errOut}
	err = u.unpack(in)
	in.CloseWithError(err)
	far := <-ended
	if _, told := errors.AsType[failed](far); told || err == nil || errors.Is(err, far) {
		return far // the reason why the archive ended, or is empty
	}
	return err
}

// send copies a local file or directory into a member's container.
func (c *copier) send(ctx context.Context, local string, to place) error {
	actual, err := filepath.EvalSymlinks(local) // a link that is named is what it points to
	if err != nil {
		return err
	}
	dir, name := path.Split(path.Clean(to.path))
	err = c.run(ctx, to, nil, io.Discard, "test", "-d", to.path)
	_, isFile := errors.AsType[failed](err)
	switch {
	case err == nil:
		dir, name = to.path, filepath.Base(filepath.Clean(local))
	case isFile && strings.HasSuffix(to.path, "/"):
		return fmt.Errorf("the directory %s does not exist in %s", scalar.Plain(to.path), to.member)
	case !isFile:
		return err
	}
	if dir == "" {
		dir = "."
	}
	in, out := io.Pipe()
	packed := make(chan error, 1)
	go func() {
		err := pack(out, actual, name, c.errOut)
		out.CloseWithError(err)
		packed <- err
	}()
	err = c.run(ctx, to, in, io.Discard, "tar", "xmof", "-", "-C", dir)
	in.Close()
	if local := <-packed; local != nil && !errors.Is(local, io.ErrClosedPipe) {
		return local // why the archive is incomplete
	}
	return err
}
