package server

import (
	"context"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/store/memstore"
)

// The debug pages are there when asked for only; what the planner sees of a set can be read
// back, and has no Secret in it.
func TestDebugPages(t *testing.T) {
	for _, asked := range []bool{false, true} {
		dir := shortDir(t)
		cfg := config(dir, memstore.New(), nil)
		cfg.Metrics, cfg.Debug = "unix://"+filepath.Join(dir, "m.sock"), asked
		r := start(t, cfg)
		if _, err := r.apply(manifests); err != nil {
			t.Fatal(err)
		}
		client := &http.Client{Timeout: patience, Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(dir, "m.sock"))
		}}}
		get := func(path string) (int, string) {
			t.Helper()
			for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
				res, err := client.Get("http://stead" + path)
				if err != nil && time.Now().Before(deadline) {
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				defer res.Body.Close()
				body, err := io.ReadAll(res.Body)
				if err != nil {
					t.Fatal(err)
				}
				return res.StatusCode, string(body)
			}
		}
		if !asked {
			for _, path := range []string{"/debug/pprof/", "/debug/world?set=default/db"} {
				if code, body := get(path); code != http.StatusNotFound {
					t.Errorf("%s: %d %s", path, code, body)
				}
			}
			client.CloseIdleConnections()
			continue
		}
		if code, body := get("/debug/pprof/"); code != http.StatusOK || !strings.Contains(body, "goroutine") {
			t.Errorf("%d %s", code, body)
		}
		for path, want := range map[string]int{"/debug/world": http.StatusBadRequest, "/debug/world?set=default/no": http.StatusNotFound} {
			if code, body := get(path); code != want {
				t.Errorf("%s: %d %s", path, code, body)
			}
		}
		code, line := get("/debug/world?set=default/db")
		w, err := plan.ReadWorld([]byte(line))
		if code != http.StatusOK || err != nil || w.Set == nil || w.Set.Ref.Name != "db" || len(w.Free) == 0 {
			t.Errorf("%d, %v: %s", code, err, line)
		}
		if strings.Contains(line, "hunter2") || strings.Count(line, "\n") != 1 {
			t.Errorf("what it says is %s", line)
		}
		client.CloseIdleConnections()
	}
	cfg := config(shortDir(t), memstore.New(), nil)
	cfg.Debug = true
	cfg.Default()
	if err := cfg.Check(); err == nil || !strings.Contains(err.Error(), "--debug needs --metrics") {
		t.Errorf("got %v", err)
	}
}
