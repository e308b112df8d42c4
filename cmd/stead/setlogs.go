package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"google.golang.org/grpc/status"
	gproto "google.golang.org/protobuf/proto"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
)

// setLogs shows the logs of all members of the set that req names in place of a member:
// one after the other, or all at once when they are followed. A failure of one member does
// not keep the others from being shown.
func setLogs(ctx context.Context, control proto.ControlClient, req *proto.LogsRequest, out, errOut io.Writer) error {
	names, err := livingMembers(ctx, control, req.GetNamespace(), req.GetMember())
	if err != nil {
		return err
	}
	var (
		lock sync.Mutex // of out and errOut: lines are written whole
		all  sync.WaitGroup
		errs = make([]error, len(names))
	)
	show := func(i int) {
		one := gproto.Clone(req).(*proto.LogsRequest)
		one.Member = names[i]
		to := &lineWriter{lock: &lock, out: out, prefix: "[" + names[i] + "] "}
		toErr := &lineWriter{lock: &lock, out: errOut, prefix: to.prefix}
		stream, err := control.Logs(ctx, one)
		if err == nil {
			err = copyLogs(stream, to, toErr)
		}
		if err = errors.Join(err, to.flush(), toErr.flush()); err != nil {
			errs[i] = fmt.Errorf("%s: %s", names[i], explainError(err))
		}
	}
	for i := range names {
		if req.GetFollow() {
			all.Go(func() { show(i) })
		} else {
			show(i)
		}
	}
	all.Wait()
	if ctx.Err() != nil { // Ctrl-C, not a failure of members
		return status.FromContextError(ctx.Err()).Err()
	}
	return errors.Join(errs...)
}

// livingMembers returns the names of the members of a set that have a life.
func livingMembers(ctx context.Context, control proto.ControlClient, namespace, set string) (names []string, err error) {
	ctx, cancel := call(ctx)
	defer cancel()
	got, err := control.List(ctx, &proto.ListRequest{Kind: proto.KindMember, Namespace: namespace, Set: set})
	if err != nil {
		return nil, err
	}
	for _, o := range got.GetObjects() {
		var m records.MemberStatus
		if _, err := decode(o, nil, &m); err != nil {
			return nil, err
		}
		if m.Token != "" {
			names = append(names, m.Name)
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("set %s in namespace %s has no running members", set, namespace)
	}
	return names, nil
}

// lineWriter writes whole lines, each with a prefix.
type lineWriter struct {
	lock   *sync.Mutex
	out    io.Writer
	prefix string
	rest   []byte // the start of a line that has not ended
}

// Write implements io.Writer.
func (w *lineWriter) Write(p []byte) (int, error) {
	w.rest = append(w.rest, p...)
	end := bytes.LastIndexByte(w.rest, '\n') + 1
	if end == 0 {
		return len(p), nil
	}
	var text []byte
	for line := range bytes.Lines(w.rest[:end]) {
		text = append(append(text, w.prefix...), line...)
	}
	w.rest = append(w.rest[:0], w.rest[end:]...)
	w.lock.Lock()
	defer w.lock.Unlock()
	if _, err := w.out.Write(text); err != nil {
		return 0, err
	}
	return len(p), nil
}

// flush writes a last line that has no newline.
func (w *lineWriter) flush() error {
	if len(w.rest) == 0 {
		return nil
	}
	_, err := w.Write([]byte{'\n'})
	return err
}
