// Command release makes what is given away of a version, from the commit that is checked out and nothing
// else: the program, its SBOM, a Debian package, and the checksums of these. The same commit, version, Go and dpkg
// make the same bytes, in whatever directory.
//
//	release [-version V] [-to DIR]                what `make release` runs
//	release -program FILE -gzip [-version V] [-to DIR]   packages a program of yours, as the lab does
package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	r := release{arch: runtime.GOARCH}
	flag.StringVar(&r.version, "version", "", "the version; default: the tag of the commit without its v, or 0.0.0~git<commit>")
	flag.StringVar(&r.commit, "commit", "HEAD", "what to build, as git names it")
	flag.StringVar(&r.to, "to", "dist", "directory of the results, made anew")
	flag.StringVar(&r.program, "program", "", "package this program, with the files of this tree, instead of building the commit")
	flag.BoolVar(&r.gzip, "gzip", false, "compress the package in a second instead of a minute")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := r.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// anyOwner lets CI run as another user than the one who cloned.
const anyOwner = "safe.directory=*"

// release is one run.
type release struct {
	version string
	commit  string
	arch    string // as GOARCH and Debian call it
	to      string
	program string // to be packaged; empty: build it
	gzip    bool
	epoch   time.Time // of the commit: the time of all that is made
}

func (r *release) run(ctx context.Context) error {
	if err := r.identify(ctx); err != nil {
		return err
	}
	if err := os.RemoveAll(r.to); err != nil {
		return err
	}
	if err := os.MkdirAll(r.to, 0o755); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp("", "stead-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	tree, program := ".", r.program
	if program == "" {
		tree, program = filepath.Join(tmp, "tree"), filepath.Join(r.to, "stead-"+r.version+"-linux-"+r.arch)
		if err := export(ctx, r.commit, tree); err != nil {
			return err
		}
		if err := build(ctx, tree, r.version, program); err != nil {
			return err
		}
	}
	bill, err := readBill(r, program, tree)
	if err != nil {
		return err
	}
	sbom := filepath.Join(r.to, "stead-"+r.version+".cdx.json")
	if err := os.WriteFile(sbom, bill, 0o644); err != nil {
		return err
	}
	p := debian{release: r, tree: tree, program: program, sbom: sbom, root: filepath.Join(tmp, "root")}
	if err := p.build(ctx, filepath.Join(r.to, "stead_"+r.version+"_"+r.arch+".deb")); err != nil {
		return err
	}
	return writeSums(r.to)
}

// identify finds the version and the time of the commit.
func (r *release) identify(ctx context.Context) error {
	said, err := output(ctx, ".", "git", "-c", anyOwner, "log", "-1", "--format=%ct %h %H", r.commit)
	if err != nil {
		return err
	}
	seconds, names, _ := strings.Cut(said, " ")
	short, whole, _ := strings.Cut(names, " ")
	r.commit = whole // whatever is committed meanwhile
	at, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return fmt.Errorf("git log: %w", err)
	}
	r.epoch = time.Unix(at, 0).UTC()
	if r.version == "" {
		// It fails where no tag is at the commit, which is no problem.
		tag, _ := output(ctx, ".", "git", "-c", anyOwner, "describe", "--exact-match", "--tags", "--match", "v[0-9]*", r.commit)
		r.version = versionOf(tag, short)
	}
	if !debianVersion.MatchString(r.version) {
		return fmt.Errorf("version %q: write one as 1.2.3 or 1.2.3~rc1: digits first, then letters, digits, dots, plus or tilde", r.version)
	}
	return nil
}

// versionOf is what a commit is called: by its tag, or sorted by Debian before each version that has one.
func versionOf(tag, commit string) string {
	if tag != "" {
		return strings.TrimPrefix(tag, "v")
	}
	return "0.0.0~git" + commit
}

// export writes the files of the commit to dir: nothing that is not committed gets into a release.
func export(ctx context.Context, commit, dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	archive := dir + ".tar"
	if _, err := output(ctx, ".", "git", "-c", anyOwner, "archive", "--output", archive, commit); err != nil {
		return err
	}
	_, err := output(ctx, dir, "tar", "-xf", archive)
	return err
}

// embedded are the programs that stead has in it.
var embedded = []string{"stead-node", "stead-dns", "stead-tunnel"}

// build makes the program of the tree.
func build(ctx context.Context, tree, version, program string) error {
	program, err := filepath.Abs(program)
	if err != nil {
		return err
	}
	for _, name := range embedded {
		if err := compile(ctx, tree, filepath.Join("cmd/stead/embed", name), "./cmd/"+name, ""); err != nil {
			return err
		}
	}
	return compile(ctx, tree, program, "./cmd/stead", " -X main.version="+version)
}

// compile runs go build with what makes its result depend on source and Go alone.
func compile(ctx context.Context, tree, to, pkg, set string) error {
	c := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w"+set, "-o", to, pkg)
	c.Dir = tree
	c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off", "GOOS=linux", "GOAMD64=v1", "GOARM64=v8.0", "GOEXPERIMENT=")
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", pkg, err, out)
	}
	return nil
}

// writeSums writes SHA256SUMS, which `sha256sum -c` reads, of all files in dir.
func writeSums(dir string) error {
	files, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var sums bytes.Buffer
	for _, f := range files {
		b, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(b), f.Name())
	}
	fmt.Print(sums.String())
	return os.WriteFile(filepath.Join(dir, "SHA256SUMS"), sums.Bytes(), 0o644)
}

// output is what a command says, without the last newline.
func output(ctx context.Context, dir, name string, args ...string) (string, error) {
	c := exec.CommandContext(ctx, name, args...)
	c.Dir = dir
	var said, complaint bytes.Buffer
	c.Stdout, c.Stderr = &said, &complaint
	if err := c.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, &complaint)
	}
	return strings.TrimSuffix(said.String(), "\n"), nil
}
