// Package lab tests Stead on hosts with kernels of their own, with systemd, cgroup v2 and containerd:
// what befalls hosts, and not only processes. The hosts are those of scripts/lab, user-mode Linux. Stead is
// installed on them as docs/OPERATIONS.md says, host1 with server and agent, the others with an agent that
// joined by token. The tests need root, STEAD_LAB=1 and what scripts/setup --lab installs; `make lab` runs them,
// `make soak` their long forms.
package lab
