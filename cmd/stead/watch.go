package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

var errSetGone = errors.New("set does not exist")

// watchSet calls see with every state of the set until see returns true. It returns
// errSetGone when the set does not exist (any more), and waits for a server that is away.
func watchSet(ctx context.Context, control proto.ControlClient, ref spec.SetRef,
	see func(object, *spec.SetSpec, *records.ShownSet) (bool, error)) error {
	for {
		err := watchSetOnce(ctx, control, ref, see)
		over := status.Code(err) == codes.DeadlineExceeded // the server's clock may be ahead of ours
		if ctx.Err() != nil || over {
			why := errLeft
			if over || errors.Is(ctx.Err(), context.DeadlineExceeded) {
				why = errNotInTime
			}
			return fmt.Errorf("wait for %s: %w; the operation continues, see 'stead describe set %s -n %s'", ref, why, ref.Name, ref.Namespace)
		}
		if status.Code(err) != codes.Unavailable && !errors.Is(err, io.EOF) { // EOF: the server ended the watch
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(500 * time.Millisecond):
		}
	}
}

func watchSetOnce(ctx context.Context, control proto.ControlClient, ref spec.SetRef,
	see func(object, *spec.SetSpec, *records.ShownSet) (bool, error)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := control.Watch(ctx, &proto.ListRequest{Kind: proto.KindSet, Namespace: string(ref.Namespace), Set: string(ref.Name)})
	if err != nil {
		return err
	}
	found := false
	for {
		ev, err := stream.Recv()
		if err != nil {
			return err
		}
		if ev.GetSynced() {
			if !found {
				return errSetGone
			}
			continue
		}
		if ev.GetObject().GetName() != string(ref.Name) {
			continue
		}
		if ev.GetGone() {
			return errSetGone
		}
		found = true
		var s spec.SetSpec
		var st records.ShownSet
		o, err := decode(ev.GetObject(), &s, &st)
		if err != nil {
			return err
		}
		if done, err := see(o, &s, &st); done || err != nil {
			return err
		}
	}
}
