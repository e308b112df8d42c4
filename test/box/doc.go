// Package box tests a whole cluster in one process: the real servers, engines and
// agents over connections in memory and a real ledger on disk, with a store in memory
// and hosts in memory. It needs neither root nor containerd, and any part may crash at
// any call.
//
// Each test has a bubble (testing/synctest) with a clock of its own, which moves on when
// everything in it waits: no machine is too slow for a test, and waits cost nothing. Three
// tests are outside, on the machine's clock: two with a real embedded etcd, which are named
// so, and one that starts a program, the fence command.
package box
