// Package session is a node's side of its sessions with servers.
//
// Client holds what lasts from one session to the next; Session is one of them, as data in and
// data out: Handle takes a message of the server, Flush and Ping return what is to be sent.
// Neither knows the network, and neither has a goroutine or a clock of its own, so that a
// simulation can drive them. Client.Run is the loop around them that does.
//
// What a session says comes from Outbox (reports) and agent/reclaim (volumes); what it hears
// goes to Workers, SnapshotCache, Known and agent/deadline. Link is the way to a server over
// the network, and Answerer does what people ask of a node.
package session
