package main

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/stead-project/stead/proto"
)

// kustomized renders the kustomization of a directory as 'kustomize build' does, as one manifest:
// lines of problems are those of the rendering. Plugins, programs and Helm charts are not run, and
// nothing is fetched from the network.
func kustomized(dir string) ([]*proto.File, error) {
	if strings.Contains(dir, "://") || strings.HasPrefix(dir, "git@") {
		return nil, misuse("-k %s: name a directory of this machine; nothing is fetched from the network", dir)
	}
	if info, err := os.Stat(dir); err != nil {
		return nil, err
	} else if !info.IsDir() {
		return nil, misuse("-k %s: name the directory of the kustomization, not a file", dir)
	}
	text, err := offline(func() ([]byte, error) {
		resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
		if err != nil {
			return nil, err
		}
		return resources.AsYaml()
	})
	switch {
	case errors.Is(err, errFetch) || err != nil && strings.Contains(err.Error(), errFetch.Error()) || isGit(err):
		return nil, fmt.Errorf("-k %s: %w; download what it names, and name the directory or file instead: %s", dir, errFetch, plainLines(strings.TrimSpace(err.Error())))
	case err != nil:
		return nil, fmt.Errorf("-k %s: %s", dir, plainLines(strings.TrimSpace(err.Error())))
	case len(text) > manifestBytes:
		return nil, fmt.Errorf("-k %s: the rendering is larger than %s; split it", dir, bytesText(manifestBytes))
	}
	return []*proto.File{{Name: dir + " (rendered)", Content: text}}, nil
}

var errFetch = errors.New("a base or file is remote, and nothing is fetched from the network")

// isGit reports whether kustomize wanted to run git, which it does not find.
func isGit(err error) bool { return err != nil && strings.Contains(err.Error(), "no 'git' program") }

// offline runs f without the ways in which kustomize could fetch something: HTTP, and the
// program git. Nothing else of this program may use them meanwhile.
func offline(f func() ([]byte, error)) (_ []byte, err error) {
	transport, path := http.DefaultTransport, os.Getenv("PATH")
	http.DefaultTransport = refuser{}
	defer func() {
		http.DefaultTransport = transport
		err = errors.Join(err, os.Setenv("PATH", path))
	}()
	if err := os.Setenv("PATH", ""); err != nil {
		return nil, err
	}
	return f()
}

// refuser refuses every request.
type refuser struct{}

// RoundTrip implements http.RoundTripper.
func (refuser) RoundTrip(*http.Request) (*http.Response, error) { return nil, errFetch }
