// Package box tests a whole cluster in one process: the real servers, engines and
// agents over unix sockets and a real ledger on disk, with a store in memory (or an
// embedded etcd) and hosts in memory. It needs neither root nor containerd, and any
// part may crash at any call.
package box
