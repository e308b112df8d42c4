package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/md5"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
)

// debianVersion are the versions that Debian takes of a package without revisions, as ours is.
var debianVersion = regexp.MustCompile(`^[0-9][A-Za-z0-9.+~]*$`)

// handProgram is where an installation by hand has the program, as the units in deploy/ say; packageProgram is where
// Debian's policy wants it.
const handProgram, packageProgram = "/usr/local/bin/stead", "/usr/bin/stead"

// debian is a package in the making.
type debian struct {
	*release
	tree    string // of the source
	program string // stead
	sbom    string
	root    string // is made: the files as they are installed
}

// copies are files of the tree, with their place in the package.
var copies = []struct{ from, to string }{
	{"deploy/debian/default", "etc/default/stead"},
	{"deploy/debian/copyright", "usr/share/doc/stead/copyright"},
	{"deploy/debian/lintian-overrides", "usr/share/lintian/overrides/stead"},
	{"docs/OPERATIONS.md", "usr/share/doc/stead/OPERATIONS.md"},
	{"docs/METRICS.md", "usr/share/doc/stead/METRICS.md"},
	{"docs/MANIFEST.md", "usr/share/doc/stead/MANIFEST.md"},
	{"docs/MEMBERS.md", "usr/share/doc/stead/MEMBERS.md"},
	{"docs/CLI.md", "usr/share/doc/stead/CLI.md"},
	{"deploy/alerts.yaml", "usr/share/doc/stead/examples/alerts.yaml"},
	{"deploy/dashboard.json", "usr/share/doc/stead/examples/dashboard.json"},
	{"examples/etcd/etcd.yaml", "usr/share/doc/stead/examples/etcd/etcd.yaml"},
	{"examples/zookeeper/zookeeper.yaml", "usr/share/doc/stead/examples/zookeeper/zookeeper.yaml"},
}

// completions are the shells, with the place of what completes for each.
var completions = map[string]string{
	"bash": "usr/share/bash-completion/completions/stead",
	"zsh":  "usr/share/zsh/vendor-completions/_stead",
	"fish": "usr/share/fish/vendor_completions.d/stead.fish",
}

// build makes the package.
func (p *debian) build(ctx context.Context, to string) error {
	syscall.Umask(0o022) // modes are part of a package
	for _, step := range []func(context.Context) error{p.files, p.units, p.shells, p.pages, p.changes, p.licenses, p.control} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	// Of xz the number of threads decides about the bytes.
	args := []string{"--root-owner-group", "-Zxz", "--threads-max=1", "--build", p.root, to}
	if p.gzip {
		args[1] = "-Zgzip"
	}
	c := exec.CommandContext(ctx, "dpkg-deb", args...)
	c.Env = append(os.Environ(), fmt.Sprintf("SOURCE_DATE_EPOCH=%d", p.epoch.Unix()))
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("dpkg-deb: %w\n%s", err, out)
	}
	return nil
}

func (p *debian) files(context.Context) error {
	for _, c := range copies {
		if err := p.copy(filepath.Join(p.tree, c.from), c.to, 0o644); err != nil {
			return err
		}
	}
	if err := p.copy(p.sbom, "usr/share/doc/stead/stead.cdx.json", 0o644); err != nil {
		return err
	}
	return p.copy(p.program, packageProgram, 0o755)
}

// units are those of deploy/ with the program where the package has it. Nothing enables them.
func (p *debian) units(context.Context) error {
	units, err := filepath.Glob(filepath.Join(p.tree, "deploy/*.service"))
	if err != nil {
		return err
	}
	for _, unit := range units {
		text, err := os.ReadFile(unit)
		if err != nil {
			return err
		}
		text = bytes.ReplaceAll(text, []byte(handProgram), []byte(packageProgram))
		if err := p.write("lib/systemd/system/"+filepath.Base(unit), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func (p *debian) shells(ctx context.Context) error {
	for shell, place := range completions {
		text, err := output(ctx, p.tree, p.abs(p.program), "completion", shell)
		if err != nil {
			return err
		}
		if err := p.write(place, []byte(text+"\n"), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func (p *debian) pages(ctx context.Context) error {
	dir := p.root + ".man"
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	if _, err := output(ctx, p.tree, p.abs(p.program), "man", p.abs(dir)); err != nil {
		return err
	}
	pages, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, page := range pages {
		text, err := os.ReadFile(filepath.Join(dir, page.Name()))
		if err != nil {
			return err
		}
		if err := p.write("usr/share/man/man1/"+page.Name()+".gz", gzipped(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// changes are Debian's changelog, which names the version, and ours.
func (p *debian) changes(context.Context) error {
	ours, err := os.ReadFile(filepath.Join(p.tree, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	if err := p.write("usr/share/doc/stead/CHANGELOG.md.gz", gzipped(ours), 0o644); err != nil {
		return err
	}
	debians := fmt.Sprintf("stead (%s) unstable; urgency=medium\n\n  * See CHANGELOG.md.gz.\n\n -- Stead maintainers <maintainers@stead.dev>  %s\n",
		p.version, p.epoch.Format("Mon, 02 Jan 2006 15:04:05 -0700"))
	return p.write("usr/share/doc/stead/changelog.gz", gzipped([]byte(debians)), 0o644)
}

// licenses are those of the modules in the program, which ask to go with it.
func (p *debian) licenses(ctx context.Context) error {
	list, err := output(ctx, p.tree, "go", "list", "-m", "-f", "{{.Path}}@{{.Version}} {{.Dir}}", "all")
	if err != nil {
		return err
	}
	bill, err := os.ReadFile(p.sbom)
	if err != nil {
		return err
	}
	var all bytes.Buffer
	for line := range strings.Lines(list) {
		module, dir, _ := strings.Cut(strings.TrimSpace(line), " ")
		if !bytes.Contains(bill, []byte(`"pkg:golang/`+strings.ToLower(module)+`"`)) {
			continue
		}
		files, err := filepath.Glob(filepath.Join(dir, "[LCN][IO][CPT][EYI]*")) // LICENSE, LICENCE, COPYING, NOTICE
		if err != nil || len(files) == 0 {
			return fmt.Errorf("module %s has no license in %q", module, dir)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			fmt.Fprintf(&all, "==== %s: %s\n\n%s\n\n", module, filepath.Base(file), text)
		}
	}
	return p.write("usr/share/doc/stead/licenses.gz", gzipped(all.Bytes()), 0o644)
}

// control is what dpkg reads.
func (p *debian) control(context.Context) error {
	var sums bytes.Buffer
	size := int64(0)
	err := filepath.WalkDir(p.root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			size++ // Debian counts a directory as 1 KiB
			return err
		}
		b, err := os.ReadFile(path)
		below, _ := filepath.Rel(p.root, path) // it is below
		fmt.Fprintf(&sums, "%x  %s\n", md5.Sum(b), below)
		size += int64(len(b)+1023) / 1024
		return err
	})
	if err != nil {
		return err
	}
	control, err := os.ReadFile(filepath.Join(p.tree, "deploy/debian/control"))
	if err != nil {
		return err
	}
	filled := strings.NewReplacer("@VERSION@", p.version, "@ARCH@", p.arch, "@SIZE@", fmt.Sprint(size)).Replace(string(control))
	if err := p.write("DEBIAN/control", []byte(filled), 0o644); err != nil {
		return err
	}
	if err := p.write("DEBIAN/md5sums", sums.Bytes(), 0o644); err != nil {
		return err
	}
	if err := p.write("DEBIAN/conffiles", []byte("/etc/default/stead\n"), 0o644); err != nil {
		return err
	}
	for _, script := range []string{"postinst", "prerm", "postrm"} {
		if err := p.copy(filepath.Join(p.tree, "deploy/debian", script), "DEBIAN/"+script, 0o755); err != nil {
			return err
		}
	}
	return nil
}

func (p *debian) copy(from, to string, mode fs.FileMode) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return p.write(to, b, mode)
}

func (p *debian) write(to string, text []byte, mode fs.FileMode) error {
	path := filepath.Join(p.root, to)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, text, mode)
}

// abs is a path for a program that runs elsewhere.
func (p *debian) abs(path string) string {
	if whole, err := filepath.Abs(path); err == nil {
		return whole
	}
	return path
}

// gzipped has no name and no time in it.
func gzipped(text []byte) []byte {
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // the level is one
	w.Write(text)                                         // memory takes all
	w.Close()
	return b.Bytes()
}
