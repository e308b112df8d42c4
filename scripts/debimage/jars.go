package main

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// Jar is one pinned file of Maven Central and the line it is on.
type Jar struct {
	Name   string // GROUP:NAME:VERSION[:CLASSIFIER]
	SHA256 string // hex
	Line   int
}

var (
	jarName = regexp.MustCompile(`^[A-Za-z0-9._-]+(:[A-Za-z0-9._-]+){2,3}$`)
	jarSum  = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

// central is Maven's own repository. What comes from there counts only with the sum of the list.
var central = "https://repo1.maven.org/maven2"

// file is the jar's folder in a repository and its name.
func (j Jar) file() (folder, name string) {
	words := strings.Split(j.Name, ":")
	name = words[1] + "-" + words[2]
	if len(words) == 4 {
		name += "-" + words[3]
	}
	return path.Join(strings.ReplaceAll(words[0], ".", "/"), words[1], words[2]), name + ".jar"
}

// AddJars adds the jars of l, below usr/share/java/LIST, and downloads into folder those that are not there.
func (t Tree) AddJars(l List, folder string) error {
	if len(l.Jars) == 0 {
		return nil
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	into := path.Join("usr/share/java", strings.TrimSuffix(filepath.Base(l.Path), ".list"))
	for _, d := range []string{"usr/share/java", into} {
		t.absent(d, Entry{Type: tar.TypeDir, Mode: 0o755, From: l.Path})
	}
	client := &http.Client{Timeout: 5 * time.Minute}
	for _, j := range l.Jars {
		content, err := j.content(client, folder)
		if err != nil {
			return fmt.Errorf("%s:%d: %w", l.Path, j.Line, err)
		}
		_, name := j.file()
		e := file(string(content))
		e.From = j.Name
		if err := t.add(path.Join(into, name), e); err != nil {
			return fmt.Errorf("%s:%d: %w", l.Path, j.Line, err)
		}
	}
	return nil
}

// content reads the jar from folder, or downloads it there, whole or not at all.
func (j Jar) content(client *http.Client, folder string) ([]byte, error) {
	in, name := j.file()
	kept := filepath.Join(folder, j.SHA256+"-"+name)
	if b, err := os.ReadFile(kept); err == nil && j.check(b) == nil {
		return b, nil
	}
	url := central + "/" + in + "/" + name
	answer, err := client.Get(url)
	if err != nil {
		return nil, fmt.Errorf("%w; this image needs Maven Central", err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", url, answer.Status)
	}
	b, err := io.ReadAll(answer.Body)
	if err == nil {
		err = j.check(b)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", url, err)
	}
	partial := kept + ".partial"
	if err := os.WriteFile(partial, b, 0o644); err != nil {
		return nil, err
	}
	return b, os.Rename(partial, kept)
}

func (j Jar) check(content []byte) error {
	if sum := sha256.Sum256(content); hex.EncodeToString(sum[:]) != j.SHA256 {
		return fmt.Errorf("its SHA-256 is %x, and the list says %s", sum, j.SHA256)
	}
	return nil
}
