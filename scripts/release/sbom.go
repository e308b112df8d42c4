package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// bill is an SBOM as CycloneDX 1.6 writes it, of what we say of it.
type bill struct {
	Format       string       `json:"bomFormat"`
	Spec         string       `json:"specVersion"`
	Serial       string       `json:"serialNumber"`
	Version      int          `json:"version"`
	Metadata     metadata     `json:"metadata"`
	Components   []component  `json:"components"`
	Dependencies []dependency `json:"dependencies"`
}

type metadata struct {
	Timestamp string    `json:"timestamp"`
	Component component `json:"component"`
}

type component struct {
	Type    string `json:"type"` // application or library
	Ref     string `json:"bom-ref"`
	Name    string `json:"name"`
	Version string `json:"version"`
	PURL    string `json:"purl,omitempty"`
	// Hashes of an application are of its file; of a module what go.sum has of it (h1, a SHA-256 of the hashes of its files).
	Hashes []hash `json:"hashes,omitempty"`
}

type hash struct {
	Alg     string `json:"alg"`
	Content string `json:"content"` // hex
}

type dependency struct {
	Ref  string   `json:"ref"`
	Uses []string `json:"dependsOn"`
}

// readBill makes the SBOM of a program, and of those that it has in it, which tree has in cmd/stead/embed: what the
// linker wrote into each.
func readBill(r *release, program, tree string) ([]byte, error) {
	b := bill{Format: "CycloneDX", Spec: "1.6", Version: 1}
	b.Metadata.Timestamp = r.epoch.Format(time.RFC3339)
	modules := map[string]component{}
	for i, name := range append([]string{"stead"}, embedded...) {
		path := program
		if i > 0 {
			path = filepath.Join(tree, "cmd/stead/embed", name)
		}
		self, uses, err := read(name, r.version, path)
		if err != nil {
			return nil, err
		}
		d := dependency{Ref: self.Ref}
		for _, m := range uses {
			modules[m.Ref] = m
			d.Uses = append(d.Uses, m.Ref)
		}
		if i == 0 {
			d.Uses = append(d.Uses, embedded...)
			b.Metadata.Component, b.Serial = self, serial(self.Hashes[0].Content)
		} else {
			b.Components = append(b.Components, self)
		}
		slices.Sort(d.Uses)
		b.Dependencies = append(b.Dependencies, d)
	}
	for _, m := range modules {
		b.Components = append(b.Components, m)
	}
	slices.SortFunc(b.Components, func(a, b component) int { return strings.Compare(a.Type+a.Ref, b.Type+b.Ref) })
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	err := e.Encode(b)
	return text.Bytes(), err
}

// read is the program at path, and the modules in it, with Go's own packages as one.
func read(name, version, path string) (self component, uses []component, err error) {
	built, err := buildinfo.ReadFile(path)
	if err != nil {
		return self, nil, fmt.Errorf("what %s was built from: %w", path, err)
	}
	program, err := os.ReadFile(path)
	if err != nil {
		return self, nil, err
	}
	self = component{Type: "application", Ref: name, Name: name, Version: version,
		Hashes: []hash{{"SHA-256", fmt.Sprintf("%x", sha256.Sum256(program))}}}
	std := strings.TrimPrefix(built.GoVersion, "go")
	uses = append(uses, component{Type: "library", Ref: "pkg:golang/std@" + std, Name: "std", Version: std, PURL: "pkg:golang/std@" + std})
	for _, m := range built.Deps {
		c, err := moduleOf(m)
		if err != nil {
			return self, nil, err
		}
		uses = append(uses, c)
	}
	return self, uses, nil
}

func moduleOf(m *debug.Module) (component, error) {
	if m.Replace != nil {
		m = m.Replace
	}
	ref := "pkg:golang/" + strings.ToLower(m.Path) + "@" + m.Version // a purl of Go is in lower case
	c := component{Type: "library", Ref: ref, Name: m.Path, Version: m.Version, PURL: ref}
	if m.Sum == "" {
		return c, nil
	}
	sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(m.Sum, "h1:"))
	if err != nil {
		return c, fmt.Errorf("sum %q of %s: %w", m.Sum, m.Path, err)
	}
	c.Hashes = []hash{{"SHA-256", hex.EncodeToString(sum)}}
	return c, nil
}

// serial is a UUID of version 8, made from what the SBOM is about.
func serial(sum string) string {
	return fmt.Sprintf("urn:uuid:%s-%s-8%s-8%s-%s", sum[:8], sum[8:12], sum[13:16], sum[17:20], sum[20:32])
}
