// Package access is the edge of a server: who may come in, as whom, and what they may call
// (SAFETY S9, S21). All of it is here, for an auditor to read in this order:
//
//	listeners.go    the ways in: the unix socket, and TCP with TLS 1.3 where that is asked for
//	anonymous.go    after the handshake: callers without a certificate are served apart
//	caller.go       who a connection is, and the table of who may call what
//	authorizer.go   judges every call, and every message of a node, by that table
//	authority.go    the cluster's certificate authority; serve.go its TLS, token.go join tokens
//	letin.go        which client let in which node
//	enrol.go        the calls by which machines join and people let them
//	key.go          the key that seals Secrets and the authority's own key
//	limit.go        how much at once, and what is logged of it
//	grpc.go         the bounds of a call, and which code an error gets
//	socket.go       one server per socket
//
// The Authority alone writes the keys ca, token and revoked, and a node's record when it lets
// the node in. Certificates end by the wall clock, as all certificates do; nothing else does:
// a join token ends with its lease, and no decision about a member looks here.
package access
