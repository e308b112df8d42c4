// Package dnsd answers the names of sets and members, and forwards the rest.
//
// A Zone is an immutable value: Build makes it from the pictures of all sets, a
// Server swaps it by one pointer, and Answer looks names up in it without a lock.
// Build and Answer are pure; only the Server does I/O.
//
// The names, under the domain (default cluster.local):
//
//	<set>-<n>.<service>.<ns>.svc   A or AAAA of a member, from the moment it has an address
//	<service>.<ns>.svc             the addresses of the ready members (of all, when published so)
//	_<port>._<proto>.<service>...  SRV of each named port, with the targets' addresses
//	d.c.b.a.in-addr.arpa           PTR to the member
//	the domain itself              SOA (serial: store revision) and NS
//
// A declared name without a record of the type asked for is NODATA; an undeclared
// one is NXDOMAIN; both carry the SOA. Every TTL, also the negative one, is 1 s.
package dnsd
