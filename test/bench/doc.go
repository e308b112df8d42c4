// Package bench measures the whole control plane without a container: server and
// agent over gRPC on a unix socket, embedded etcd with fsync, and a host in memory
// that needs no time. Each figure is measured beside its floor in the same run.
// `make bench` runs these and the benchmarks of other folders and prints one table
// (see table); docs/BENCH.md tells how to read it.
package bench
