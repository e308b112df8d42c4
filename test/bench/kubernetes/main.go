// Command kubernetes does to a StatefulSet what BenchmarkScale does to a set of Stead, on the control plane
// of Kubernetes alone, and prints each phase as a line of `go test -bench`:
//
//	kubernetes -programs DIR -members 1000 -hosts 50
//
// It starts etcd, kube-apiserver and kube-controller-manager of DIR on loopback, and ends them. All is as kind to
// Kubernetes as can be: the limits on the rate of requests are raised, no controller runs but that of StatefulSets, there is
// no scheduler and no Service, nodes need no heartbeat, and are all played by this one process with one
// watch: it binds each pod as soon as it sees it, says in the next request that it is ready, and deletes at once what
// shall go. Its own processor time does not count.
//
// It is a module of its own, so that the dependencies of Kubernetes are none of ours.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// patience bounds every wait; a rolling update of 1,000 pods took 208 s, with a load of 30 several times that.
const patience = time.Hour

func main() {
	programs := flag.String("programs", ".cache/kubernetes", "where etcd, kube-apiserver and kube-controller-manager are")
	members := flag.Int("members", 100, "pods of the set")
	hosts := flag.Int("hosts", 50, "nodes")
	names := flag.String("phases", "", "what is done, such as parallel,parallel-to-zero; empty: all")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *programs, *names, *members, *hosts); err != nil {
		fmt.Fprintln(os.Stderr, "kubernetes:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, programs, names string, members, hosts int) (err error) {
	if members < 1 || hosts < 1 {
		return fmt.Errorf("-members %d -hosts %d: there must be one at least", members, hosts)
	}
	list, err := chosen(phases(members), names)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "stead-kubernetes")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	c, err := startCluster(ctx, programs, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.stop()) }()
	p, err := newPods(ctx, c, hosts)
	if err != nil {
		return err
	}
	if err := p.warmUp(ctx); err != nil {
		return fmt.Errorf("warm up: %w", err)
	}
	for _, phase := range list {
		line, err := p.measure(ctx, phase)
		if err != nil {
			return fmt.Errorf("%s: %w", phase.name, err)
		}
		fmt.Printf("BenchmarkKubernetes/%d/%s 1 %s\n", members, phase.name, line)
	}
	return nil
}
