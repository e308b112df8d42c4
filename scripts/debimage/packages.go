package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Fetch returns the files of a list's packages in the list's order, downloading
// into folder those that are not there. apt-get checks their signatures.
func Fetch(l List, folder string) ([]string, error) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	if missing := absent(l, folder); len(missing) > 0 {
		fmt.Printf("downloading %d packages of %s\n", len(missing), l.Path)
		if err := download(l, missing, folder); err != nil {
			return nil, err
		}
	}
	var files []string
	for _, p := range l.Packages {
		found, err := filepath.Glob(filepath.Join(folder, p.file()))
		if err != nil || len(found) != 1 {
			return nil, fmt.Errorf("%s:%d: %s=%s: %d files match %s in %s, want 1", l.Path, p.Line, p.Name, p.Version, len(found), p.file(), folder)
		}
		files = append(files, found[0])
	}
	return files, nil
}

// file is the pattern of a package's file name; apt writes %3a for a colon.
func (p Package) file() string {
	return p.Name + "_" + strings.ReplaceAll(p.Version, ":", "%3a") + "_*.deb"
}

func absent(l List, folder string) []Package {
	var missing []Package
	for _, p := range l.Packages {
		if found, err := filepath.Glob(filepath.Join(folder, p.file())); err != nil || len(found) == 0 {
			missing = append(missing, p)
		}
	}
	return missing
}

// download fetches packages into a folder of its own and moves whole files only.
func download(l List, packages []Package, folder string) error {
	tmp, err := os.MkdirTemp(folder, "partial")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	args := []string{"download", "-q", "-o", "APT::Sandbox::User=root"}
	for _, p := range packages {
		args = append(args, p.Name+"="+p.Version)
	}
	out, err := run(tmp, "apt-get", args...)
	if err != nil {
		// The package lists of this machine may be absent or old.
		if text, err := run("", "apt-get", "update", "-qq"); err != nil {
			return fmt.Errorf("apt-get update: %w\n%s", err, text)
		}
		out, err = run(tmp, "apt-get", args...)
	}
	if err != nil {
		if problem := notOffered(l, packages); problem != nil {
			return problem
		}
		return fmt.Errorf("apt-get download for %s: %w\n%s", l.Path, err, out)
	}
	files, err := filepath.Glob(filepath.Join(tmp, "*.deb"))
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := os.Rename(f, filepath.Join(folder, filepath.Base(f))); err != nil {
			return err
		}
	}
	return nil
}

// notOffered names the pinned versions that Debian no longer has, and its present ones.
func notOffered(l List, packages []Package) error {
	var gone []string
	for _, p := range packages {
		now, err := candidate(p.Name)
		if err == nil && now != p.Version {
			gone = append(gone, fmt.Sprintf("%s:%d: %s=%s is not offered; Debian has %s", l.Path, p.Line, p.Name, p.Version, now))
		}
	}
	if len(gone) == 0 {
		return nil
	}
	name := strings.TrimSuffix(filepath.Base(l.Path), ".list")
	return fmt.Errorf("%s\nto take Debian's versions: go run ./scripts/debimage -repin %s", strings.Join(gone, "\n"), name)
}

// candidate is the version that apt would install.
func candidate(name string) (string, error) {
	out, err := run("", "apt-cache", "policy", name)
	if err != nil {
		return "", fmt.Errorf("apt-cache policy %s: %w", name, err)
	}
	for line := range strings.Lines(out) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), "Candidate: "); ok && v != "(none)" {
			return v, nil
		}
	}
	return "", fmt.Errorf("debian offers no package %s", name)
}

// Repin writes the versions that Debian offers now into a list and those it builds on.
func Repin(folder, name string) error {
	chain, err := ReadChain(folder, name)
	if err != nil {
		return err
	}
	for _, l := range chain {
		text, err := os.ReadFile(l.Path)
		if err != nil {
			return err
		}
		lines := strings.Split(string(text), "\n")
		for _, p := range l.Packages {
			now, err := candidate(p.Name)
			if err != nil {
				return fmt.Errorf("%s:%d: %w", l.Path, p.Line, err)
			}
			if now != p.Version {
				fmt.Printf("%s:%d: %s %s -> %s\n", l.Path, p.Line, p.Name, p.Version, now)
			}
			lines[p.Line-1] = strings.Replace(lines[p.Line-1], p.Name+"="+p.Version, p.Name+"="+now, 1)
		}
		if err := os.WriteFile(l.Path, []byte(strings.Join(lines, "\n")), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// run runs a command in a folder and returns all that it printed.
func run(folder, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "LC_ALL=C", "DEBIAN_FRONTEND=noninteractive")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}
