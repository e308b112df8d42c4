package e2e

import (
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"
)

func TestADroppingForwardPolicyIsToldByCheckAndAgent(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"iptables-legacy", "iptables-nft"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("needs " + program + " (Debian package iptables): scripts/setup --dev")
		}
	}
	l := newLab(t)
	l.startAll()
	check := func(want string) error {
		out, err := l.inside(time.Minute, steadBinary, append([]string{"agent", "check"}, l.agentFlags()...)...)
		var exit *exec.ExitError
		if want == "" && err != nil || want != "" && (!errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(lineWith(out, "warning:"), want)) {
			return errors.Join(err, errors.New(out))
		}
		return nil
	}
	l.eventually(time.Minute, "the host is fit", func() error { return check("") })
	for program, want := range map[string]string{
		"iptables-legacy": "iptables-legacy's chain FORWARD drops forwarded packets by default",
		"iptables-nft":    "nft chain FORWARD of table filter drops forwarded packets by default",
	} {
		if out, err := l.inside(time.Minute, program, "-P", "FORWARD", "DROP"); err != nil {
			t.Fatalf("%s: %v\n%s", program, err, out)
		}
		l.eventually(time.Minute, program+" is told", func() error { return check(want) })
		l.eventually(2*time.Minute, "the running agent tells it", func() error {
			if said := l.agent.said(); !strings.Contains(said, want) {
				return errors.New(said)
			}
			return nil
		})
		if out, err := l.inside(time.Minute, program, "-P", "FORWARD", "ACCEPT"); err != nil {
			t.Fatalf("%s: %v\n%s", program, err, out)
		}
		l.eventually(time.Minute, "with the policy to accept the host is fit", func() error { return check("") })
	}
}
