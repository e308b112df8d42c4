package examples

import (
	"embed"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stead-project/stead/agent/files"
	"github.com/stead-project/stead/records"
)

// The files as they are built in: so scripts/mutants reaches them.
//
//go:embed lib.sh */*.yaml
var tree embed.FS

var update = flag.Bool("update", false, "write lib.sh into the manifests")

// script cuts a file of a ConfigMap out of examples/SET/SET.yaml.
func script(t *testing.T, set, name string) string {
	t.Helper()
	text, err := tree.ReadFile(set + "/" + set + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "\n  "+name+": |\n")
	if !found {
		t.Fatalf("no %s in %s", name, set)
	}
	var out strings.Builder
	for line := range strings.Lines(rest) {
		if line != "\n" && !strings.HasPrefix(line, "    ") {
			break
		}
		out.WriteString(strings.TrimPrefix(line, "    "))
	}
	return out.String()
}

// home is one member's world: its facts, its disk, and stand-ins for programs of the database. The script
// runs with lib.sh as the manifest has it.
type home struct {
	t    *testing.T
	db   string
	dir  string
	env  []string
	code int
}

func newHome(t *testing.T, set string, ordinal int) *home {
	t.Helper()
	h := &home{t: t, db: set, dir: t.TempDir()}
	h.put("entry.sh", script(t, set, set+".sh"))
	h.put("lib.sh", script(t, set, "lib.sh"))
	h.put("facts/self/.keep", "")
	h.put("calls", "")
	for _, of := range []string{"cmp", "curl", "diff", "jq", "nc", "ps", "python3"} { // this machine may have them, the images have not
		h.put("bin/"+of, "#!/bin/sh\nexit 127\n")
	}
	h.env = append(os.Environ(),
		"FAKE="+h.dir, "FACTS="+h.dir+"/facts", "DATA="+h.dir+"/disk", "LIB="+h.dir+"/lib.sh", "PATIENCE=0",
		"PATH="+h.dir+"/bin:"+os.Getenv("PATH"), "STEAD_SET="+set, "STEAD_SET_DOMAIN="+set+".d",
		fmt.Sprint("STEAD_ORDINAL=", ordinal), fmt.Sprintf("STEAD_MEMBER=%s-%d", set, ordinal), fmt.Sprintf("STEAD_FQDN=%s-%d.%[1]s.d", set, ordinal))
	return h
}

// peer is a member as its peers see it, not ready and with no data.
func (h *home) peer(ordinal int) records.Peer {
	return records.Peer{Name: fmt.Sprint(h.db, "-", ordinal), Ordinal: ordinal, FQDN: fmt.Sprintf("%s-%d.%[1]s.d", h.db, ordinal),
		Address: netip.AddrFrom4([4]byte{192, 0, 2, byte(ordinal + 1)}), Volumes: records.VolumesNew}
}

// set writes the facts about the set as an agent does.
func (h *home) set(p records.Snapshot) {
	h.t.Helper()
	env, err := files.SetEnv(&p)
	if err != nil {
		h.t.Fatal(err)
	}
	h.put("facts/.set.env", string(env))
	h.move("facts/.set.env", "facts/set.env")
}

func (h *home) move(from, to string) {
	h.t.Helper()
	if err := os.Rename(filepath.Join(h.dir, from), filepath.Join(h.dir, to)); err != nil {
		h.t.Fatal(err)
	}
}

func (h *home) put(name, content string) {
	h.t.Helper()
	p := filepath.Join(h.dir, name)
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(content), 0o755); err != nil {
		h.t.Fatal(err)
	}
}

func (h *home) has(name string) bool {
	_, err := os.Stat(filepath.Join(h.dir, name))
	return err == nil
}

func (h *home) read(name string) string {
	b, err := os.ReadFile(filepath.Join(h.dir, name))
	if err != nil && !os.IsNotExist(err) {
		h.t.Fatal(err)
	}
	return string(b)
}

// start runs the entry script; the returned function waits for its end.
func (h *home) start(args ...string) (cmd *exec.Cmd, wait func()) {
	h.t.Helper()
	cmd = exec.CommandContext(h.t.Context(), "bash", append([]string{filepath.Join(h.dir, "entry.sh")}, args...)...)
	log, err := os.Create(filepath.Join(h.dir, "log"))
	if err != nil {
		h.t.Fatal(err)
	}
	defer func() { _ = log.Close() }() // the script has its own handle
	cmd.Env, cmd.Stdout, cmd.Stderr = h.env, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // the script and its etcd
	if err := cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	// What the script left in the background has nobody else to end it.
	h.t.Cleanup(func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	return cmd, func() {
		_ = cmd.Wait() // the code is what the caller looks at
		h.code = cmd.ProcessState.ExitCode()
	}
}

// until waits for a condition that another process brings about.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not in time: %s", what)
		}
	}
}
