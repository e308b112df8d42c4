// Package containerdrt runs containers through containerd and runc.
//
// The daemon is a guest's host: it is used as it is, never reconfigured. Everything
// of ours lives in one containerd namespace, one runc root, one cgroup parent and
// one run directory, all of which carry the cluster's id and the node's name, so
// that several nodes, tests and other users share a machine.
//
//	containerd id     <ns>.<member>.<container>, hashed when that is no valid id
//	cgroup            <CgroupParent>/<ns>.<member>/<container>
//	namespaces        <RunDir>/ns/<ns>/<member>/{net,ipc,uts} and sandbox.json
//
// None of them holds the token: the host itself refuses a second life of an
// identity (SAFETY S9). What a container is stands in its labels, so a restarted
// agent adopts it. containerd says how a process ended; whether one is left is seen
// in the cgroups alone (SAFETY S13), and a start is refused unless its processes
// show up in the cgroup where they will be looked for.
package containerdrt
