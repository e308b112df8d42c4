package main

import (
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"
)

// TestAKustomizationIsRenderedAsOneManifest, with all that it generates and patches.
func TestAKustomizationIsRenderedAsOneManifest(t *testing.T) {
	files, err := kustomized("testdata/overlay")
	if err != nil || len(files) != 1 {
		t.Fatalf("got %v, %v", files, err)
	}
	text := string(files[0].GetContent())
	for _, want := range []string{"name: prod-db\n", "name: prod-settings\n", "replicas: 2\n", "url: https://example.local\n", "app: shop\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if name := files[0].GetName(); name != "testdata/overlay (rendered)" {
		t.Errorf("got the name %q", name)
	}
}

// TestNothingIsFetchedWhileKustomizeRuns: neither by HTTP nor by git, whatever a kustomization names, and all
// is as it was afterwards.
func TestNothingIsFetchedWhileKustomizeRuns(t *testing.T) {
	path, transport := os.Getenv("PATH"), http.DefaultTransport
	_, err := offline(func() ([]byte, error) {
		if got := os.Getenv("PATH"); got != "" {
			t.Errorf("programs are found in %q", got)
		}
		resp, err := http.Get("http://127.0.0.1:1/")
		if err == nil {
			resp.Body.Close()
		}
		return nil, err
	})
	if !errors.Is(err, errFetch) {
		t.Errorf("got %v, want %v", err, errFetch)
	}
	if os.Getenv("PATH") != path || http.DefaultTransport != transport {
		t.Error("PATH or HTTP are not as they were")
	}
}
