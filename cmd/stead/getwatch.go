package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	gproto "google.golang.org/protobuf/proto"

	"github.com/stead-project/stead/internal/backoff"
	"github.com/stead-project/stead/proto"
)

// watchTarget prints the objects that exist, then each change as it happens.
func (g *getter) watchTarget(ctx context.Context, targets []target) error {
	t := targets[0]
	show, err := g.printer(ctx, t, false)
	if err != nil {
		return err
	}
	w := watched{target: t, show: show}
	list := gproto.Clone(&g.list).(*proto.ListRequest)
	list.Kind, list.Namespace = t.kind, cmp.Or(t.namespace, list.Namespace)
	for {
		err := g.watchOnce(ctx, list, &w)
		if errors.Is(err, io.EOF) || ctx.Err() != nil {
			return nil
		}
		if !w.synced || status.Code(err) != codes.Unavailable {
			return err
		}
		if !backoff.Sleep(ctx, againAfter) {
			return nil
		}
	}
}

// watched is what a watch has shown.
type watched struct {
	target
	show   *printer
	synced bool
	seen   map[string][]byte // by namespace and name, as it was shown last
}

// watchOnce shows what one call returns: what differs from what was shown.
func (g *getter) watchOnce(ctx context.Context, list *proto.ListRequest, w *watched) error {
	stream, err := g.control.Watch(ctx, list)
	if err != nil {
		return err
	}
	var first []*proto.Object
	now, began := map[string][]byte{}, false // began: this call has returned all that exists
	for {
		ev, err := stream.Recv()
		if err != nil {
			return err
		}
		o := ev.GetObject()
		key := o.GetNamespace() + "/" + o.GetName()
		switch {
		case ev.GetSynced():
			began = true
			if err := w.begin(first, now); err != nil {
				return err
			}
		case len(w.names) > 0 && !slices.Contains(w.names, o.GetName()):
		case !began:
			first, now[key] = append(first, o), o.GetJson()
		case ev.GetGone():
			delete(w.seen, key)
			w.gone(o.GetName())
		default:
			w.seen[key] = o.GetJson()
			if err := w.show.change(o); err != nil {
				return err
			}
		}
	}
}

// begin shows all that exists, and after an interruption what has changed.
func (w *watched) begin(all []*proto.Object, now map[string][]byte) error {
	before := w.seen
	w.seen = now
	if !w.synced {
		w.synced = true
		return w.show.all(all, false)
	}
	for _, o := range all {
		key := o.GetNamespace() + "/" + o.GetName()
		if !bytes.Equal(before[key], now[key]) {
			if err := w.show.change(o); err != nil {
				return err
			}
		}
		delete(before, key)
	}
	for _, key := range slices.Sorted(maps.Keys(before)) {
		_, name, _ := strings.Cut(key, "/")
		w.gone(name)
	}
	return nil
}

// gone tells that an object is gone, but of an event: that is forgotten after a time, and nothing has happened.
func (w *watched) gone(name string) {
	if w.kind != proto.KindEvent {
		fmt.Fprintf(w.show.out, "%s %s is gone\n", w.kind, name)
	}
}
