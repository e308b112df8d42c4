package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
)

// volumeEvery is how often a volume that is waited for is read.
const volumeEvery = 200 * time.Millisecond

// volume waits, with --wait, until judge says how it ended, and prints what the volume waits
// for whenever that changes. judge gets nil when the volume no longer exists.
func (w *waitFlags) volume(cmd *cobra.Command, control proto.ControlClient, ns, id string, judge func(*records.Volume, records.ShownVolume) (string, error)) error {
	if !w.wait {
		return nil
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), w.timeout)
	defer cancel()
	log, last := newProgress(cmd.OutOrStdout()), ""
	defer log.beat()()
	for {
		v, st, err := findVolume(ctx, control, ns, id)
		switch {
		case err == nil:
			end, err := judge(v, st)
			if end != "" {
				log.line("volume", end)
			}
			if end != "" || err != nil {
				return err
			}
			if now := waitsFor(v, st); now != last {
				log.line("volume", now)
				last = now
			}
		case ctx.Err() == nil && status.Code(err) != codes.Unavailable && status.Code(err) != codes.DeadlineExceeded:
			return err
		}
		select {
		case <-ctx.Done():
			why := errLeft
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				why = errNotInTime
			}
			return fmt.Errorf("wait for volume %s: %w; the operation continues, see 'stead volume ls -n %s'", id, why, ns)
		case <-time.After(volumeEvery):
		}
	}
}

func waitsFor(v *records.Volume, st records.ShownVolume) string {
	if note := volumeNote(st); note != "" {
		return string(v.Fate) + ": " + note
	}
	return string(v.Fate)
}

// findVolume returns the volume with this id, also from the trash; nil: there is none.
func findVolume(ctx context.Context, control proto.ControlClient, ns, id string) (*records.Volume, records.ShownVolume, error) {
	got, err := control.List(ctx, &proto.ListRequest{Kind: proto.KindVolume, Namespace: ns})
	for _, o := range got.GetObjects() {
		var v records.Volume
		var st records.ShownVolume
		if _, err := decode(o, &v, &st); err != nil {
			return nil, st, err
		}
		if string(v.UID) == id {
			return &v, st, nil
		}
	}
	return nil, records.ShownVolume{}, err
}
