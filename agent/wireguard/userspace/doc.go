// Package userspace is the process `stead-tunnel`: WireGuard in user space, by the library of WireGuard's authors, for hosts
// whose kernel has none. One process has one link, of the kind tun, and outlives the agent. The link outlives the
// process, with its routes: what is sent through it meanwhile is dropped, and leaves the host in no other way.
//
// The process is configured as the kernel's links are, by the socket that the tool `wg` uses: SocketPath. It keeps keys and
// peers in memory only. A process that is started for the same link takes over from the one before: it reads what that has
// of keys and peers, ends it, and begins anew with those peers, which takes as long as one exchange with each. Packets of that
// time may be lost; addresses and connections stay.
package userspace
