package arch

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// causeFile has the list of all causes.
const causeFile = "spec/causes/cause.go"

var generated = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

// walkGo visits the Go files below root that are judged, by their path relative to it.
func walkGo(root string, visit func(rel string) error) error {
	skip, err := ignored(root)
	if err != nil {
		return err
	}
	return filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		name := d.Name()
		switch {
		case d.IsDir() && rel != "." && (name[0] == '.' || name == "testdata" || skip[rel]):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go"):
			return nil
		}
		return visit(rel)
	})
}

// ignored reads the folders that .gitignore names at the root: "/name/".
func ignored(root string) (map[string]bool, error) {
	text, err := os.ReadFile(filepath.Join(root, ".gitignore"))
	if os.IsNotExist(err) {
		return nil, nil
	}
	skip := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "/") && strings.HasSuffix(line, "/") {
			skip[strings.Trim(line, "/")] = true
		}
	}
	return skip, err
}

// below reports whether folder is root or inside it.
func below(folder, root string) bool {
	return folder == root || strings.HasPrefix(folder, root+"/")
}
