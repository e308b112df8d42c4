// Package files makes what a member sees of Stead: the directory /run/stead,
// ConfigMaps and Secrets as files and variables, hosts, resolv.conf and hostname,
// and, out of a life, the runtime's description of its containers. Builders are
// pure; writers replace files atomically, so that a reader sees the old content
// or the new one, and may be repeated after a crash at any point.
//
// /run/stead (a directory of the host, mounted read-only):
//
//	member.json         who this member is: name, namespace, set, ordinal, uid, token,
//	                    fqdn, address, node, service, domain, revision, reason, labels
//	set.json            its set as last seen: replicas, the ordinals it started with,
//	                    generation, bootstrapped, sequence, the last event included and
//	                    peers in ordinal order; the sequence never goes back
//	events              what became of the set and its members, one JSON object a line,
//	                    numbered, the same for every member: the newest 256
//	confirmed           until when set.json and events are confirmed to be current: a
//	                    moment on the clock of /proc/uptime, moved on every few seconds
//	bootstrapped        exists (content "1") once every initial member was ready once, or
//	                    the set continues with data of an earlier one; never removed
//	volume-new          one line "<claim> first" or "<claim> replaced" for each volume
//	                    on which the member was never ready when its containers were
//	                    started; absent when there is none
//	termination-reason  one word (ScaleDown, Delete, Replace, Update, Restart), written
//	                    before the stop signal
//
// Everything is on tmpfs below the agent's run directory: Secrets that are mounted as
// files never touch a disk. Those used as variables are in the container's description,
// which the runtime keeps on disk.
package files
