// Command coredns is CoreDNS with the plugins that the bench uses, in a module of its
// own so that its many dependencies are none of ours. `make bench-dns` builds it.
package main

import (
	"github.com/coredns/coredns/coremain"

	// What its configuration names (test/bench/dns/files.go).
	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/file"
)

func main() { coremain.Run() }
