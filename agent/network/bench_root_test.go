package network

import (
	"os"
	"testing"
	"time"
)

// BenchmarkAttach is one member attached, in namespaces that stand; beside it, as
// a metric, its detaching, most of which is the kernel's removal of a veth.
func BenchmarkAttach(b *testing.B) {
	if os.Getenv("STEAD_ROOT_TESTS") != "1" || os.Geteuid() != 0 {
		b.Skip("needs root and STEAD_ROOT_TESTS=1")
	}
	n, err := New(Config{ClusterID: cluster, Node: "n1", NetNS: namespace(b)})
	must(b, err)
	must(b, n.Setup(b.Context()))
	path := namespace(b)
	var detached time.Duration
	for b.Loop() {
		must(b, n.Attach(b.Context(), member(0), path, address(10)))
		b.StopTimer()
		began := time.Now()
		must(b, n.Detach(b.Context(), member(0)))
		detached += time.Since(began)
		b.StartTimer()
	}
	b.ReportMetric(float64(detached.Nanoseconds())/float64(b.N), "detach-ns/op")
}

// BenchmarkService is one endpoint of one service among 1,000 of 3 endpoints that goes or comes; beside
// it, as a metric, what making all of them took.
func BenchmarkService(b *testing.B) {
	if os.Getenv("STEAD_ROOT_TESTS") != "1" || os.Geteuid() != 0 {
		b.Skip("needs root and STEAD_ROOT_TESTS=1")
	}
	n, err := New(Config{ClusterID: cluster, Node: "n1", NetNS: namespace(b)})
	must(b, err)
	must(b, n.Setup(b.Context()))
	all := manyServices(1000, 3)
	began := time.Now()
	must(b, n.SetServices(serviceRange, all))
	first := time.Since(began)
	endpoints := all[500].Endpoints
	for i := 0; b.Loop(); i++ {
		all[500].Endpoints = endpoints[:2+i%2]
		must(b, n.SetServices(serviceRange, all))
	}
	b.ReportMetric(float64(first.Nanoseconds()), "first-ns")
}
