package containerdrt_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// command runs a program without output: a container that it leaves running would
// hold a pipe of ours open.
func (h *host) command(name string, args ...string) {
	h.t.Helper()
	log := filepath.Join(h.dir, "command.log")
	out, err := os.Create(log)
	if err != nil {
		h.t.Fatal(err)
	}
	defer out.Close()
	cmd := exec.CommandContext(h.t.Context(), name, args...)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil {
		text, _ := os.ReadFile(log)
		h.t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, text)
	}
}

// startCtr is what `ctr run` needs for the same container, the program's own start
// included.
func startCtr(h *host) time.Duration {
	h.t.Helper()
	ctr := func(args ...string) {
		h.command("ctr", append([]string{"--address", h.cfg.Address, "--namespace", h.cfg.Namespace}, args...)...)
	}
	began := time.Now()
	ctr("run", "--detach", "--null-io", imageName, "peer", "/box", "run")
	took := time.Since(began)
	ctr("task", "kill", "--signal", "SIGKILL", "peer")
	// Killed is not yet gone.
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		err := exec.CommandContext(h.t.Context(), "ctr", "--address", h.cfg.Address, "--namespace", h.cfg.Namespace,
			"task", "delete", "peer").Run()
		if err == nil {
			break
		}
		if time.Now().After(deadline) {
			h.t.Fatalf("ctr task delete: %v", err)
		}
	}
	ctr("container", "delete", "peer")
	return took
}

// bundle makes a directory from which runc runs the box.
func (h *host) bundle() string {
	h.t.Helper()
	dir := filepath.Join(h.dir, "bundle")
	if err := os.MkdirAll(filepath.Join(dir, "rootfs"), 0o755); err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "rootfs", "box"), h.box, 0o755); err != nil {
		h.t.Fatal(err)
	}
	h.command("runc", "spec", "--bundle", dir)
	path := filepath.Join(dir, "config.json")
	text, err := os.ReadFile(path)
	if err != nil {
		h.t.Fatal(err)
	}
	var config map[string]any
	if err := json.Unmarshal(text, &config); err != nil {
		h.t.Fatal(err)
	}
	process := config["process"].(map[string]any)
	process["terminal"], process["args"] = false, []string{"/box", "run"}
	config["linux"].(map[string]any)["cgroupsPath"] = h.cfg.CgroupParent + "/runc"
	text, err = json.Marshal(config)
	if err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		h.t.Fatal(err)
	}
	return dir
}

// startRunc is runc alone: no image, no snapshot, no daemon, no shim.
func startRunc(h *host, bundle string) time.Duration {
	h.t.Helper()
	root := filepath.Join(h.dir, "runc")
	began := time.Now()
	h.command("runc", "--root", root, "run", "--detach", "--bundle", bundle, "peer")
	took := time.Since(began)
	h.command("runc", "--root", root, "delete", "--force", "peer")
	return took
}

func reportMillis(b *testing.B, total time.Duration, n int, unit string) {
	b.ReportMetric(float64(total.Microseconds())/float64(n)/1000, unit)
}
