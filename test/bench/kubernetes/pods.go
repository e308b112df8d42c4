package main

import (
	"context"
	"fmt"
	"maps"
	"sync"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

const namespace = "default"

// pods are all pods, with the nodes that run them.
type pods struct {
	*cluster
	hosts int
	next  int // host

	mu    sync.Mutex
	now   map[string]pod // by name
	moved chan struct{}  // closed when now changes
	err   error          // of a node
}

type pod struct {
	uid   types.UID
	ready bool
}

// newPods makes the nodes and runs what comes on them until ctx ends.
func newPods(ctx context.Context, c *cluster, hosts int) (*pods, error) {
	p := &pods{cluster: c, hosts: hosts, now: map[string]pod{}, moved: make(chan struct{})}
	for i := range hosts {
		n := &core.Node{
			ObjectMeta: meta.ObjectMeta{Name: nodeName(i)},
			Status:     core.NodeStatus{Conditions: []core.NodeCondition{{Type: core.NodeReady, Status: core.ConditionTrue}}},
		}
		if _, err := c.api.CoreV1().Nodes().Create(ctx, n, meta.CreateOptions{}); err != nil {
			return nil, err
		}
	}
	if err := c.until(ctx, "there is a namespace", func(ctx context.Context) error {
		_, err := c.api.CoreV1().Namespaces().Get(ctx, namespace, meta.GetOptions{})
		return err
	}); err != nil {
		return nil, err
	}
	go p.follow(ctx)
	return p, nil
}

func nodeName(i int) string { return fmt.Sprintf("n%03d", i) }

// follow does for each pod what its node would, in no time. The API server ends a watch that does not keep up: then
// all pods are listed, and watched from there.
func (p *pods) follow(ctx context.Context) {
	begun, ended := map[types.UID]bool{}, map[types.UID]bool{}
	see := func(kind watch.EventType, x *core.Pod) {
		switch {
		case kind == watch.Deleted:
		case x.DeletionTimestamp != nil && !ended[x.UID]:
			ended[x.UID] = true
			go func() { p.fail(p.end(ctx, x)) }()
		case x.DeletionTimestamp == nil && !begun[x.UID]:
			begun[x.UID] = true
			host := nodeName(p.next % p.hosts)
			p.next++
			go func() { p.fail(p.begin(ctx, x.DeepCopy(), host)) }()
		}
		p.note(kind, x)
	}
	for ctx.Err() == nil {
		list, err := p.api.CoreV1().Pods(namespace).List(ctx, meta.ListOptions{})
		if err != nil {
			p.fail(err)
			return
		}
		p.forget(list.Items)
		for i := range list.Items {
			see(watch.Modified, &list.Items[i])
		}
		w, err := p.api.CoreV1().Pods(namespace).Watch(ctx, meta.ListOptions{ResourceVersion: list.ResourceVersion})
		if err != nil {
			p.fail(err)
			return
		}
		for ev := range w.ResultChan() {
			x, ok := ev.Object.(*core.Pod)
			if !ok {
				break
			}
			see(ev.Type, x)
		}
		w.Stop()
	}
}

// forget leaves those that are not listed out.
func (p *pods) forget(listed []core.Pod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	names := map[string]bool{}
	for i := range listed {
		names[listed[i].Name] = true
	}
	maps.DeleteFunc(p.now, func(name string, _ pod) bool { return !names[name] })
	close(p.moved)
	p.moved = make(chan struct{})
}

func (p *pods) note(kind watch.EventType, x *core.Pod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if kind == watch.Deleted {
		delete(p.now, x.Name)
	} else {
		ready := false
		for _, c := range x.Status.Conditions {
			ready = ready || c.Type == core.PodReady && c.Status == core.ConditionTrue
		}
		p.now[x.Name] = pod{x.UID, ready && x.DeletionTimestamp == nil}
	}
	close(p.moved)
	p.moved = make(chan struct{})
}

// fail notes the first error. A pod that went or moved on meanwhile is none.
func (p *pods) fail(err error) {
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		p.err = err
		close(p.moved)
		p.moved = make(chan struct{})
	}
}

// begin binds a pod as a scheduler would, and says that it is ready.
func (p *pods) begin(ctx context.Context, x *core.Pod, host string) error {
	err := p.api.CoreV1().Pods(namespace).Bind(ctx, &core.Binding{
		ObjectMeta: meta.ObjectMeta{Name: x.Name, Namespace: namespace, UID: x.UID},
		Target:     core.ObjectReference{Kind: "Node", Name: host},
	}, meta.CreateOptions{})
	if err != nil {
		return fmt.Errorf("bind %s: %w", x.Name, err)
	}
	now := meta.Now()
	x.ResourceVersion = "" // whatever came between
	x.Spec.NodeName = host
	x.Status.Phase, x.Status.StartTime = core.PodRunning, &now
	x.Status.PodIP, x.Status.PodIPs = "10.0.0.1", []core.PodIP{{IP: "10.0.0.1"}}
	x.Status.Conditions = nil
	for _, kind := range []core.PodConditionType{core.PodScheduled, core.PodInitialized, core.ContainersReady, core.PodReady} {
		x.Status.Conditions = append(x.Status.Conditions, core.PodCondition{Type: kind, Status: core.ConditionTrue, LastTransitionTime: now})
	}
	if _, err := p.api.CoreV1().Pods(namespace).UpdateStatus(ctx, x, meta.UpdateOptions{}); err != nil {
		return fmt.Errorf("say that %s is ready: %w", x.Name, err)
	}
	return nil
}

// end deletes a pod that shall go.
func (p *pods) end(ctx context.Context, x *core.Pod) error {
	none := int64(0)
	err := p.api.CoreV1().Pods(namespace).Delete(ctx, x.Name, meta.DeleteOptions{GracePeriodSeconds: &none, Preconditions: &meta.Preconditions{UID: &x.UID}})
	if err != nil {
		return fmt.Errorf("delete %s: %w", x.Name, err)
	}
	return nil
}

// until waits until the pods are as wanted.
func (p *pods) until(ctx context.Context, wanted func(now map[string]pod) bool) error {
	for {
		p.mu.Lock()
		moved, err, ok := p.moved, p.err, wanted(p.now)
		p.mu.Unlock()
		if err != nil || ok {
			return err
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
