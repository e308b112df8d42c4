// Package deploy holds the systemd units; its tests read them.
package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// directive is one line of a unit.
type directive struct{ section, name, value string }

func read(t *testing.T, file string) (all []directive) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	section := ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "["):
			section = line
		default:
			name, value, found := strings.Cut(line, "=")
			if !found {
				t.Fatalf("%s: %q is no directive", file, line)
			}
			all = append(all, directive{section, name, value})
		}
	}
	return all
}

// allowed are the directives that were thought about. Many that are habit elsewhere
// would end or cut off members when a unit stops or restarts: RuntimeDirectory
// removes /run/stead with the members' namespaces; whatever gives the agent mounts of
// its own (PrivateTmp, ProtectSystem, ReadOnlyPaths …) hides those it makes for members
// from containerd; ProtectKernelTunables takes its sysctls; Requires= and BindsTo= of
// containerd stop it when containerd stops.
var allowed = map[string]bool{
	"[Unit] Description": true, "[Unit] After": true, "[Unit] Wants": true, "[Unit] Conflicts": true,
	"[Unit] RequiresMountsFor": true, "[Unit] StartLimitIntervalSec": true,
	"[Service] Type": true, "[Service] EnvironmentFile": true, "[Service] ExecStart": true,
	"[Service] Restart": true, "[Service] RestartSec": true, "[Service] TimeoutStopSec": true, "[Service] TimeoutStartSec": true,
	"[Service] NotifyAccess": true, "[Service] KillMode": true, "[Service] Delegate": true, "[Service] OOMScoreAdjust": true,
	"[Install] WantedBy": true,
}

// always are the lines that members' lives hang on, in every unit.
var always = []directive{
	{"[Service]", "KillMode", "process"},              // not the whole cgroup
	{"[Service]", "Restart", "always"},                // also after a clean end
	{"[Unit]", "StartLimitIntervalSec", "0"},          // and for ever
	{"[Unit]", "RequiresMountsFor", "/var/lib/stead"}, // a store must not begin anew below a mount
	{"[Install]", "WantedBy", "multi-user.target"},
}

// ofMembers are those of units with an agent.
var ofMembers = []directive{
	{"[Service]", "Delegate", "yes"},
	{"[Unit]", "Wants", "containerd.service"},
	// At shutdown it ends before these do: members stop with their containers, network and disks.
	{"[Unit]", "After", "network.target remote-fs.target containerd.service"},
}

// ofServers are those of units with a server.
var ofServers = []directive{
	{"[Service]", "Type", "notify"},              // started means: the API answers
	{"[Service]", "TimeoutStartSec", "infinity"}, // ended for being slow, it would be slow again
}

func TestUnitsLetMembersLive(t *testing.T) {
	for file, command := range map[string]string{
		"stead.service":        "/usr/local/bin/stead dev $STEAD_OPTIONS",
		"stead-server.service": "/usr/local/bin/stead server $STEAD_SERVER_OPTIONS",
		"stead-agent.service":  "/usr/local/bin/stead agent $STEAD_AGENT_OPTIONS",
	} {
		have := map[directive]bool{}
		for _, d := range read(t, file) {
			have[d] = true
			if !allowed[d.section+" "+d.name] {
				t.Errorf("%s: %s %s= was not thought about here; see allowed", file, d.section, d.name)
			}
		}
		want := append([]directive{{"[Service]", "ExecStart", command}}, always...)
		if file != "stead-server.service" {
			want = append(want, ofMembers...)
		}
		if file == "stead-agent.service" {
			want = append(want, directive{"[Service]", "Type", "exec"}) // it may wait for a server, and the host's boot does not
		} else {
			want = append(want, ofServers...)
		}
		for _, d := range want {
			if !have[d] {
				t.Errorf("%s lacks %s %s=%s", file, d.section, d.name, d.value)
			}
		}
	}
}

// systemd's own opinion, where it is installed; it need not run.
func TestSystemdTakesTheUnits(t *testing.T) {
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("needs systemd-analyze (package systemd)")
	}
	units, err := filepath.Glob("*.service")
	if err != nil || len(units) != 3 {
		t.Fatalf("units: %v, %v", units, err)
	}
	dir := t.TempDir()
	for i, unit := range units {
		text, err := os.ReadFile(unit)
		if err != nil {
			t.Fatal(err)
		}
		// A program that is there: verify wants to see one.
		units[i] = filepath.Join(dir, unit)
		text = []byte(strings.ReplaceAll(string(text), "/usr/local/bin/stead", "/bin/sh"))
		if err := os.WriteFile(units[i], text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.CommandContext(t.Context(), "systemd-analyze", append([]string{"verify", "--man=no"}, units...)...).CombinedOutput()
	if err != nil || strings.Contains(string(out), dir) {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
}
