package e2e

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/stead-project/stead/agent/runtime/runtimetest"
)

// The user of a lab's registries, and what docker-registry reads of him.
const (
	registryUser     = "robot"
	registryPassword = "hunter2"
	registryUsers    = "robot:$2b$05$abcdefghijklmnopqrstuuoXuKqgZXLiJqzfmMXDDhSFPIvxV7t8.\n"
)

// registryConfig has a directory, an address, a certificate and who may do what.
const registryConfig = `version: 0.1
log: {level: warn}
storage: {filesystem: {rootdirectory: %q}}
http:
  addr: %s
  tls: {certificate: %q, key: %q}
%s`

// registryBinary is Debian's docker-registry.
func (l *Lab) registryBinary() string {
	l.t.Helper()
	binary, err := exec.LookPath("docker-registry")
	if err != nil {
		if binary, err = filepath.Abs("../../.cache/tools/usr/bin/docker-registry"); err == nil {
			_, err = os.Stat(binary)
		}
	}
	if err != nil {
		l.t.Skip("no docker-registry of Debian: make e2e unpacks it")
	}
	return binary
}

// startRegistry starts a registry in the lab's namespace; all of them have the same images. With
// users it asks for their passwords.
func (l *Lab) startRegistry(name, addr string, users bool) *process {
	l.t.Helper()
	binary := l.registryBinary()
	if l.certs == nil {
		l.certs = newCerts(l)
	}
	auth := ""
	if users {
		auth = fmt.Sprintf("auth: {htpasswd: {realm: lab, path: %q}}\n", l.path("htpasswd"))
	}
	config := fmt.Sprintf(registryConfig, l.path("registry"), addr, l.certs.dir+"/server.pem", l.certs.dir+"/server-key.pem", auth)
	err := errors.Join(os.WriteFile(l.path("htpasswd"), []byte(registryUsers), 0o600), os.WriteFile(l.path(name+".yml"), []byte(config), 0o600))
	if err != nil {
		l.t.Fatal(err)
	}
	p := l.start(name, binary, "serve", l.path(name+".yml"))
	l.eventually(time.Minute, name+" answers", func() error {
		_, err := l.curl("https://" + addr + "/v2/")
		return err
	})
	return p
}

// curl asks a registry as its user, inside the namespace.
func (l *Lab) curl(args ...string) (string, error) {
	args = append([]string{"-sSf", "-m", "20", "--cacert", l.certs.dir + "/ca.pem", "-u", registryUser + ":" + registryPassword}, args...)
	out, err := l.inside(time.Minute, "curl", args...)
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return out, nil
}

// push gives the image of an OCI archive to a registry, under REPOSITORY:TAG.
func (l *Lab) push(archive, addr, repository, tag string) {
	l.t.Helper()
	dir := l.path("pushed-" + tag)
	must := func(_ string, err error) {
		l.t.Helper()
		if err != nil {
			l.t.Fatalf("push %s:%s: %v", repository, tag, err)
		}
	}
	must("", unpackFlat(archive, dir))
	index, err := os.ReadFile(filepath.Join(dir, "index.json"))
	must("", err)
	var top struct {
		Manifests []struct{ Digest, MediaType string }
	}
	must("", json.Unmarshal(index, &top))
	blobs, err := filepath.Glob(filepath.Join(dir, "sha256-*"))
	must("", err)
	manifest := top.Manifests[0]
	base := "https://" + addr + "/v2/" + repository
	for _, blob := range blobs {
		digest := strings.Replace(filepath.Base(blob), "-", ":", 1)
		if digest == manifest.Digest {
			continue
		}
		head, err := l.curl("-X", "POST", "-d", "", "-D", "-", "-o", "/dev/null", base+"/blobs/uploads/")
		must("", err)
		_, at, _ := strings.Cut(strings.ToLower(head), "\nlocation: ")
		at, _, _ = strings.Cut(head[len(head)-len(at):], "\r\n")
		must(l.curl("-X", "PUT", "-H", "Content-Type: application/octet-stream", "--data-binary", "@"+blob, at+"&digest="+digest))
	}
	must(l.curl("-X", "PUT", "-H", "Content-Type: "+manifest.MediaType,
		"--data-binary", "@"+filepath.Join(dir, strings.Replace(manifest.Digest, ":", "-", 1)), base+"/manifests/"+tag))
}

// otherToolArchive is an image as toolArchive's, of another digest.
func (l *Lab) otherToolArchive() string {
	l.t.Helper()
	program, err := os.ReadFile(toolBinary)
	archive := l.path("other-tool.tar")
	if err == nil {
		err = os.WriteFile(archive, runtimetest.Archive(l.t, "stead.local/tool:2", program, runtimetest.ImageConfig{Env: []string{"OTHER=1"}}), 0o600)
	}
	if err != nil {
		l.t.Fatal(err)
	}
	return archive
}

// unpackFlat writes index.json and the blobs of an archive into dir, as ALGORITHM-HEX.
func unpackFlat(archive, dir string) error {
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	for in := tar.NewReader(f); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		text, err := io.ReadAll(in)
		if err != nil {
			return err
		}
		name := strings.ReplaceAll(strings.TrimPrefix(h.Name, "blobs/"), "/", "-")
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			return err
		}
	}
}

// configureRegistry writes the hosts.toml of registry.test.
func (l *Lab) configureRegistry(text string) {
	l.t.Helper()
	dir := l.path("certs.d", "registry.test")
	err := os.MkdirAll(dir, 0o700)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "hosts.toml"), []byte(text), 0o600)
	}
	if err != nil {
		l.t.Fatal(err)
	}
}
