package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// host is a Debian 12 that is thrown away: a directory with containerd and runc installed, and nothing that runs.
// What maintainer scripts ask of systemd is written down, and not done.
type host struct {
	*testing.T
	dir string
}

// debianRoot is the archive of such hosts, made once.
const debianRoot = ".cache/debian-root.tar"

// recorder stands for systemctl. A unit is active if a test says so.
const recorder = `#!/bin/sh
echo "$*" >> /systemctl.log
case "$*" in *is-active*) grep -qsx "$3" /active ;; esac
`

func newHost(t *testing.T) *host {
	t.Helper()
	if os.Getenv("STEAD_ROOT_TESTS") != "1" {
		t.Skip("needs STEAD_ROOT_TESTS=1 and root: it installs into a Debian of its own")
	}
	t.Chdir(root)
	if _, err := os.Stat(debianRoot); err != nil {
		if _, err := exec.LookPath("mmdebstrap"); err != nil {
			t.Skip("no Debian of its own for a package: scripts/setup --dev installs mmdebstrap")
		}
		part := debianRoot + ".part"
		said, err := exec.CommandContext(t.Context(), "mmdebstrap", "--quiet", "--format=tar", "--variant=minbase",
			"--include=containerd,runc,systemd,man-db", "bookworm", part).CombinedOutput()
		if err != nil { // as of an archive that mmdebstrap does not reach
			t.Skipf("no Debian of its own for a package: %v\n%s", err, said)
		}
		if err := os.Rename(part, debianRoot); err != nil {
			t.Fatal(err)
		}
	}
	h := &host{T: t, dir: t.TempDir()}
	if out, err := exec.CommandContext(t.Context(), "tar", "-C", h.dir, "-xpf", debianRoot).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	h.write("usr/bin/systemctl", recorder, 0o755)
	if err := os.MkdirAll(h.path("run/systemd/system"), 0o755); err != nil { // as if systemd ran
		t.Fatal(err)
	}
	return h
}

func (h *host) path(below string) string { return filepath.Join(h.dir, below) }

func (h *host) write(file, text string, mode os.FileMode) {
	h.Helper()
	err := os.MkdirAll(filepath.Dir(h.path(file)), 0o755)
	if err == nil {
		err = os.WriteFile(h.path(file), []byte(text), mode)
	}
	if err != nil {
		h.Fatal(err)
	}
}

func (h *host) read(file string) string {
	h.Helper()
	text, err := os.ReadFile(h.path(file))
	if err != nil {
		h.Fatal(err)
	}
	return string(text)
}

// run is a command on the host. It has no network: what is installed must be enough.
func (h *host) run(args ...string) string {
	h.Helper()
	ctx, cancel := context.WithTimeout(h.Context(), 5*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, "unshare", append([]string{"--net", "chroot", h.dir}, args...)...)
	c.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C"}
	out, err := c.CombinedOutput()
	if err != nil {
		h.Fatalf("%v: %v\n%s", args, err, out)
	}
	return string(out)
}

// asked is what systemctl was told since it was asked last.
func (h *host) asked() string {
	text, _ := os.ReadFile(h.path("systemctl.log")) // absent: nothing was
	h.write("systemctl.log", "", 0o644)
	return string(text)
}

// pack puts a package of the tree's program into the host.
func (h *host) pack(version string) {
	h.Helper()
	program := h.path("../stead")
	if _, err := os.Stat(program); err != nil {
		if err := build(h.Context(), ".", "tested", program); err != nil {
			h.Fatal(err)
		}
	}
	to := h.TempDir()
	r := release{version: version, commit: "HEAD", arch: "amd64", to: filepath.Join(to, "dist"), program: program, gzip: true}
	if err := r.run(h.Context()); err != nil {
		h.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(r.to, "stead_"+version+"_amd64.deb"))
	if err != nil {
		h.Fatal(err)
	}
	h.write("stead.deb", string(text), 0o644)
}

func (h *host) mustHave(text string, words ...string) {
	h.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			h.Errorf("no %q in\n%s", w, text)
		}
	}
}

func TestThePackageIsInstalledUpgradedAndRemoved(t *testing.T) {
	h := newHost(t)
	h.pack("1.0")

	h.run("apt-get", "install", "-y", "./stead.deb")
	if asked := h.asked(); strings.Trim(strings.ReplaceAll(asked, "--quiet is-active stead-server\n--quiet is-active stead-agent\n--quiet is-active stead\n", ""), "\n") != "daemon-reload" {
		t.Errorf("the installation asked systemd for\n%s", asked)
	}
	h.mustHave(h.run("stead", "version", "--client"), "tested")
	h.mustHave(h.run("dpkg", "-s", "stead"), "Status: install ok installed", "Version: 1.0")
	if out := h.run("systemd-analyze", "verify", "--man=no", "stead.service", "stead-server.service", "stead-agent.service"); strings.Contains(out, "stead") {
		t.Error(out)
	}
	for _, unit := range []string{"stead", "stead-server", "stead-agent"} {
		if _, err := os.Lstat(h.path("etc/systemd/system/multi-user.target.wants/" + unit + ".service")); err == nil {
			t.Errorf("%s was enabled", unit)
		}
	}
	h.mustHave(h.run("man", "-P", "cat", "stead-get"), "SYNOPSIS", "stead get")

	// An upgrade, by whoever has changed the options, has members, and left something of an installation by hand.
	h.write("etc/default/stead", "STEAD_OPTIONS=--cidr 10.1.0.0/16\n", 0o644)
	h.write("var/lib/stead/agent/volumes/data", "precious", 0o600)
	h.write("usr/local/bin/other", "", 0o755)
	h.write("active", "stead\n", 0o644)
	h.pack("1.1")
	said := h.run("apt-get", "install", "-y", "./stead.deb")
	h.mustHave(said, "systemctl restart stead (no member restarts)")
	for word := range strings.FieldsSeq(h.asked()) {
		if word == "restart" || word == "stop" || word == "start" || word == "enable" || word == "disable" {
			t.Errorf("the upgrade asked systemd for a %s", word)
		}
	}
	if got := h.read("etc/default/stead"); got != "STEAD_OPTIONS=--cidr 10.1.0.0/16\n" {
		t.Errorf("the options of before are gone: %s", got)
	}
	h.write("usr/local/bin/stead", "#!/bin/sh\n", 0o755)
	h.mustHave(h.run("dpkg-reconfigure", "stead"), "/usr/local/bin/stead takes the place of this package's")
	if err := os.Remove(h.path("usr/local/bin/stead")); err != nil {
		t.Fatal(err)
	}
	h.asked()

	h.write("etc/systemd/system/multi-user.target.wants/stead.service", "", 0o644) // enabled
	said = h.run("apt-get", "remove", "-y", "stead")
	h.mustHave(said, "Members go on running")
	h.mustHave(h.asked(), "stop stead\n", "daemon-reload")
	h.read("etc/default/stead")
	h.read("etc/systemd/system/multi-user.target.wants/stead.service")
	if _, err := os.Stat(h.path("usr/bin/stead")); err == nil {
		t.Error("the program is left after a removal")
	}

	said = h.run("apt-get", "purge", "-y", "stead")
	h.mustHave(said, "/var/lib/stead is kept")
	if got := h.read("var/lib/stead/agent/volumes/data"); got != "precious" {
		t.Errorf("a volume has %q after a purge", got)
	}
	for _, gone := range []string{"etc/default/stead", "etc/systemd/system/multi-user.target.wants/stead.service"} {
		if _, err := os.Lstat(h.path(gone)); err == nil {
			t.Errorf("%s is left after a purge", gone)
		}
	}
}

// Errors, as Debian's own judge has them; opinions are warnings.
func TestLintianTakesThePackage(t *testing.T) {
	if os.Getenv("STEAD_ROOT_TESTS") != "1" {
		t.Skip("needs STEAD_ROOT_TESTS=1: it takes its time")
	}
	if _, err := exec.LookPath("lintian"); err != nil {
		t.Skip("no lintian: scripts/setup --dev installs it")
	}
	out, err := exec.CommandContext(t.Context(), "lintian", "--allow-root", "--fail-on", "error", packaged(t)).CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
