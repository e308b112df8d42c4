package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// phase is one thing that is done to n pods.
type phase struct {
	name string
	n    int
	do   func(context.Context, *pods) error
	// wanted: it is over.
	wanted func(now, before map[string]pod) bool
}

// chosen are those of all that names has, such as parallel,parallel-to-zero; "": all. Each other than the first of a set
// needs the one before it.
func chosen(all []phase, names string) (list []phase, err error) {
	if names == "" {
		return all, nil
	}
	for name := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(all, func(p phase) bool { return p.name == name })
		if i < 0 {
			return nil, fmt.Errorf("-phases %q: there is no phase %q", names, name)
		}
		list = append(list, all[i])
	}
	return list, nil
}

// phases are those of BenchmarkScale.
func phases(n int) []phase {
	return []phase{
		{"ordered", n, create("ordered", apps.OrderedReadyPodManagement, n), allReady("ordered", n)},
		{"rolling", n, update("ordered"), replaced("ordered", n)},
		{"to-zero", n, scale("ordered", 0), gone("ordered")},
		{"parallel", n, create("parallel", apps.ParallelPodManagement, n), allReady("parallel", n)},
		{"parallel-to-zero", n, scale("parallel", 0), gone("parallel")},
	}
}

func create(name string, policy apps.PodManagementPolicyType, n int) func(context.Context, *pods) error {
	return func(ctx context.Context, p *pods) error {
		replicas := int32(n)
		app := map[string]string{"app": name}
		set := &apps.StatefulSet{
			ObjectMeta: meta.ObjectMeta{Name: name},
			Spec: apps.StatefulSetSpec{
				Replicas: &replicas, PodManagementPolicy: policy, Selector: &meta.LabelSelector{MatchLabels: app},
				Template: core.PodTemplateSpec{
					ObjectMeta: meta.ObjectMeta{Labels: app},
					Spec:       core.PodSpec{Containers: []core.Container{{Name: "main", Image: "example.local/db:1"}}},
				},
			},
		}
		_, err := p.api.AppsV1().StatefulSets(namespace).Create(ctx, set, meta.CreateOptions{})
		return err
	}
}

// update is what `kubectl rollout restart` does.
func update(name string) func(context.Context, *pods) error {
	return patch(name, `{"spec":{"template":{"metadata":{"annotations":{"restarted":"1"}}}}}`)
}

func scale(name string, n int) func(context.Context, *pods) error {
	return patch(name, fmt.Sprintf(`{"spec":{"replicas":%d}}`, n))
}

func patch(name, text string) func(context.Context, *pods) error {
	return func(ctx context.Context, p *pods) error {
		_, err := p.api.AppsV1().StatefulSets(namespace).Patch(ctx, name, types.MergePatchType, []byte(text), meta.PatchOptions{})
		return err
	}
}

// of counts the pods of a set that are as wanted.
func of(set string, now map[string]pod, wanted func(name string, x pod) bool) (n int) {
	for name, x := range now {
		if strings.HasPrefix(name, set+"-") && wanted(name, x) {
			n++
		}
	}
	return n
}

func allReady(set string, n int) func(now, before map[string]pod) bool {
	return func(now, _ map[string]pod) bool {
		return len(now) >= n && of(set, now, func(_ string, x pod) bool { return x.ready }) == n
	}
}

func replaced(set string, n int) func(now, before map[string]pod) bool {
	return func(now, before map[string]pod) bool {
		// The first is replaced last: no need to look at all before.
		first := set + "-0"
		return now[first].uid != before[first].uid &&
			of(set, now, func(name string, x pod) bool { return x.ready && x.uid != before[name].uid }) == n
	}
}

func gone(set string) func(now, before map[string]pod) bool {
	return func(now, _ map[string]pod) bool {
		return of(set, now, func(string, pod) bool { return true }) == 0
	}
}

// warmUp has the controller at work before anything is measured.
func (p *pods) warmUp(ctx context.Context) error {
	for _, w := range []phase{
		{do: create("warm", apps.ParallelPodManagement, 1), wanted: allReady("warm", 1)},
		{do: scale("warm", 0), wanted: gone("warm")},
	} {
		if err := w.do(ctx, p); err != nil {
			return err
		}
		if err := p.within(ctx, func(now map[string]pod) bool { return w.wanted(now, nil) }); err != nil {
			return err
		}
	}
	return nil
}

// within is until, and fails when a process of the control plane ends meanwhile.
func (p *pods) within(ctx context.Context, wanted func(now map[string]pod) bool) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	for _, x := range p.processes {
		go func() {
			select {
			case <-x.end:
				cancel(p.gone())
			case <-ctx.Done():
			}
		}()
	}
	return p.until(ctx, wanted)
}

// measure does a phase and returns the figures, in the units of BenchmarkScale. It begins when the control plane
// rests.
func (p *pods) measure(ctx context.Context, w phase) (string, error) {
	if err := p.settle(ctx); err != nil {
		return "", err
	}
	p.mu.Lock()
	before := maps.Clone(p.now)
	p.mu.Unlock()
	first, err := p.hop(ctx)
	if err != nil {
		return "", err
	}
	was, err := p.cluster.now(ctx)
	if err != nil {
		return "", err
	}
	began := time.Now()
	if err := w.do(ctx, p); err != nil {
		return "", err
	}
	if err := p.within(ctx, func(now map[string]pod) bool { return w.wanted(now, before) }); err != nil {
		return "", err
	}
	took := time.Since(began)
	now, err := p.cluster.now(ctx)
	if err != nil {
		return "", err
	}
	last, err := p.hop(ctx)
	if err != nil {
		return "", err
	}
	n := float64(w.n)
	hop := (first + last) / 2
	return fmt.Sprintf("%.6g ms/member %.4g hops/member %.4g cpu-ms/member %.4g revisions/member %.5g logged-bytes/member %.5g sent-bytes/member %.4g server-MiB %.4g µs/hop",
		took.Seconds()*1000/n, float64(took)/float64(hop)/n, (now.cpu-was.cpu).Seconds()*1000/n, float64(now.revisions-was.revisions)/n,
		(now.logged-was.logged)/n, float64(now.received-was.received)/n, float64(now.resident)/(1<<20), float64(hop)/1000), nil
}

// settle waits until the control plane has used less than a tenth of a core for a second, for up to a minute.
func (p *pods) settle(ctx context.Context) error {
	last, err := p.cluster.now(ctx)
	if err != nil {
		return err
	}
	for range 60 {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(time.Second):
		}
		now, err := p.cluster.now(ctx)
		if err != nil || now.cpu-last.cpu < 100*time.Millisecond {
			return err
		}
		last = now
	}
	return nil
}
