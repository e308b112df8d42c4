package lab

import "strings"

// runbookLines are the lines of the runbook (docs/OPERATIONS.md) that are run on a host, with the test here that runs
// them. The others are run by TestTheRunbook (cmd/stead), which reads this table.
var runbookLines = map[string]string{
	"systemctl reboot":                    "TestHostsRebootFreezeAndLosePower",
	"systemctl enable --now stead-agent":  "TestHostsRebootFreezeAndLosePower",
	"systemctl restart stead-agent":       "TestHostsRebootFreezeAndLosePower",
	"systemctl restart stead-server":      "TestHostsRebootFreezeAndLosePower",
	"apt-get install ./stead_*_amd64.deb": "TestHostsRebootFreezeAndLosePower",
	"stead agent check":                   "TestHostsRebootFreezeAndLosePower",
	"journalctl -u stead-agent -n 20":     "TestHostsRebootFreezeAndLosePower",
	"journalctl --vacuum-size=200M":       "TestHostsRebootFreezeAndLosePower",
	"df -h /var/lib/stead":                "TestHostsRebootFreezeAndLosePower",
	"timedatectl":                         "TestHostsRebootFreezeAndLosePower",
	"ps -eo nlwp,pid,comm --sort=-nlwp":   "TestHostsRebootFreezeAndLosePower",
	"ip route":                            "TestHostsRebootFreezeAndLosePower",
	"ss -lnup":                            "TestHostsRebootFreezeAndLosePower",
}

// runbook runs these lines on the host of the server, which has them all, and nobody's life ends. The line that
// reboots is run by reboot.
func (h *hosts) runbook(names ...string) {
	h.Helper()
	was := h.lives(names...)
	if out, err := h.try(hanging, script, "put", "1", h.pack(newer), "/root/"); err != nil {
		h.Fatalf("%v %s", err, out)
	}
	for line := range runbookLines {
		if line == "systemctl reboot" {
			continue
		}
		if said := h.ssh(1, line); said == "" && !strings.HasPrefix(line, "systemctl") && !strings.Contains(line, "vacuum") {
			h.Errorf("%s shows nothing", line)
		}
	}
	if said := h.ssh(1, "dpkg-query -W stead"); !strings.Contains(said, newer) {
		h.Errorf("the runbook's upgrade left %s", said)
	}
	h.connected()
	for name := range was {
		h.ready(name)
	}
	h.assertHeld(was)
}
