// Package nameserver is the process that answers DNS on a host, `stead-dns`, and the agent's side of it. The process
// outlives the agent: while the agent is away, is started again or replaced by another version, it answers from what
// it was given last. It holds records in memory only, so that nothing of an earlier boot is ever answered.
//
// Its unix socket lies in a directory on tmpfs, by a name made of the cluster and boot, of the program's content and
// of what it serves (Task): an agent that wants the same finds the process there, and feeds it. One that wants
// something else starts a process beside it, gives it the same sockets and all records, and lets it answer; that one
// then has the other end, which answers what it has read already. So no question is lost: each is read by one of them.
//
// The agent holds the sockets as well, unread: should the process be killed, the next one goes on with what waits in them.
//
// A connection begins with one request, in one write, whose answer the caller awaits: addresses and sockets go with
// it, or come with the answer (SCM_RIGHTS). These requests must never change, because an agent and a process of
// different versions exchange them:
//
//	sockets   the sockets that the process answers on; none: it does not answer yet
//	serve     answer on these sockets, and end those processes
//	quit      read no more, answer what was read, and end
//	feed      from now on orders come, and reports go, as JSON (order, report)
//
// Only processes of the same content exchange orders and reports.
package nameserver
