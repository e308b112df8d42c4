package main

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"github.com/stead-project/stead/manifest"
	"github.com/stead-project/stead/proto"
)

// manifestBytes limits one manifest file. The server refuses larger ones, too.
const manifestBytes = 8 << 20

// manifests are the manifests that a command line names.
type manifests struct {
	files         []string
	recursive     bool
	kustomization string // a directory; "": none
}

// addFlags adds the flags that name manifests; use is what -f is for, as in "delete ".
func (m *manifests) addFlags(flags *pflag.FlagSet, use string) {
	text := "file, directory of .yaml, .yml and .json files, or - for standard input (repeatable)"
	if use != "" {
		text = use + "the objects that a manifest, a directory or - (standard input) names (repeatable)"
	}
	flags.StringArrayVarP(&m.files, "filename", "f", nil, text)
	flags.BoolVarP(&m.recursive, "recursive", "R", false, "with -f DIRECTORY: also the directories below it")
	flags.StringVarP(&m.kustomization, "kustomize", "k", "", "directory with a kustomization.yaml; nothing is fetched from the network")
}

// named reports whether any manifest is named.
func (m *manifests) named() bool { return len(m.files) > 0 || m.kustomization != "" }

// read reads every file once, and the manifests in every directory.
func (m *manifests) read(stdin io.Reader) (out []*proto.File, err error) {
	switch {
	case m.kustomization != "" && (len(m.files) > 0 || m.recursive):
		return nil, misuse("-k cannot be used with -f or -R")
	case m.kustomization != "":
		return kustomized(m.kustomization)
	case len(m.files) == 0:
		return nil, misuse("no manifest given; use -f FILE, -f DIRECTORY, -k DIRECTORY, or -f - for standard input")
	}
	for _, name := range m.files {
		paths, err := m.paths(name)
		if err != nil {
			return nil, err
		}
		for _, path := range paths {
			content, err := readManifest(path, stdin)
			if err != nil {
				return nil, err
			}
			out = append(out, &proto.File{Name: path, Content: content})
		}
	}
	return out, nil
}

// paths are the manifests that name is about: a file, or those of a directory in their order.
func (m *manifests) paths(name string) (out []string, err error) {
	if name == "-" {
		return []string{name}, nil
	}
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{name}, nil
	}
	err = fs.WalkDir(os.DirFS(name), ".", func(path string, d fs.DirEntry, err error) error { // name may be a link
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != "." && !m.recursive:
			return fs.SkipDir
		case d.IsDir():
			return nil
		}
		switch strings.ToLower(filepath.Ext(path)) {
		case ".yaml", ".yml", ".json":
			out = append(out, filepath.Join(name, path))
		}
		return nil
	})
	if err == nil && len(out) == 0 {
		err = fmt.Errorf("%s contains no .yaml, .yml or .json file", name)
	}
	return out, err
}

// readManifest reads the file at path; "-": stdin.
func readManifest(path string, stdin io.Reader) ([]byte, error) {
	name, in := "standard input", stdin
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		name, in = path, f
	}
	content, err := io.ReadAll(io.LimitReader(in, manifestBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if len(content) > manifestBytes {
		return nil, fmt.Errorf("%s is larger than %s; split it", name, bytesText(manifestBytes))
	}
	return content, nil
}

func sourcesOf(files []*proto.File) []manifest.Source {
	out := make([]manifest.Source, len(files))
	for i, f := range files {
		out[i] = manifest.Source{Name: f.GetName(), Content: f.GetContent()}
	}
	return out
}
