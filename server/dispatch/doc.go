// Package dispatch is the API of nodes: a session a node, the whole wanted list
// at connect and then changes, reports up in batches, and tunnels for what people
// ask of a node.
//
// A session is a leased key that only this package writes. The lease is renewed by
// the node's pings alone, and a pong is sent only after a linearizable read, started
// after the ping arrived, has seen the key unchanged (SAFETY S5). When a stream
// ends, also because this server stops in good order, the key is left to its
// lease: the same node comes back within it (to this server or another) and takes
// the session over in one transaction. Revoking it would make every member of the
// node unready, and count as silence, at each restart of a server.
//
// What a session sends follows what changed, not what is there: its subscription (cache.SubscribeNode)
// names the identities, sets and histories that concern its node, and only these are looked at
// again. It is always what a look at everything would send: difference_test.go. Snapshots of sets are
// sent by difference, each marshalled once for all sessions; the states of a set are numbered, and a node
// that lacks one asks for the whole set.
//
// Where to find what:
//
//	sessions    dispatch.go session.go outbox.go ping.go; manual.go for a simulation
//	joining     joinrequest.go join.go
//	sent down   sendchanges.go sentstate.go files.go; snapshot.go setdifference.go (PURE) published.go publisher.go wakes.go historydocs.go resend.go
//	reports up  reportwriter.go reportcommit.go reportjoin.go (with what follows); volumereports.go volumeowner.go
//	limits      limits.go
//	tunnels     broker.go tunnel.go relay.go
package dispatch
