// Package enter runs a command in a running container without its runtime: a helper
// (`stead-node enter`) joins the container's namespaces, cgroups, user, capabilities and
// seccomp filter by itself. The agent uses it for probes, where the runtime's own way
// costs ten times as much and waits for a daemon.
//
// The confinement is the runtime's (see the test that compares the two from inside),
// and the member can lay hands on the way in less than on a runtime's:
//
//   - The helper is run from a sealed copy in memory: the file that it is cannot be
//     written to, whoever finds it (/proc/*/exe).
//   - It is never in the container's pid namespace. One thread of it takes on the
//     container's namespaces, user and capabilities, and only then forks: the child has
//     no right any more that the container does not have, none of the helper's memory
//     that is written to later, and no descriptor but its standard streams and two pipes.
//   - The child waits until it has been put into the container's cgroups, then loads the
//     container's filter and executes. No code of the member's runs before that.
//   - The container's first process is held by a pidfd, so that no other is entered when
//     its number is used again.
//
// Whatever is not known well enough to be done just as the runtime does it is refused
// (ErrRefused), and the caller uses the runtime.
package enter
