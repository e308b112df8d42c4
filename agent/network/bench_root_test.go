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
