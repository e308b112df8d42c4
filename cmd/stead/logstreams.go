package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	gproto "google.golang.org/protobuf/proto"

	"github.com/stead-project/stead/internal/backoff"
	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
)

// logTargets reads members, "kind name..." and "kind/name...".
func logTargets(args []string) (out []target, err error) {
	if len(args) == 0 {
		return nil, misuse("%s", wanted[proto.KindMember])
	}
	if _, no := parseKind(args[0]); no == nil && len(args) > 1 {
		out, err = parseTargets(args)
	} else {
		out, err = memberTargets(args)
	}
	if err != nil {
		return nil, err
	}
	for _, t := range out {
		if t.kind != proto.KindMember && t.kind != proto.KindSet {
			return nil, misuse("logs needs a member or a set, not a %s", t.kind)
		}
	}
	return out, nil
}

// memberTargets reads names of members, and kind/name.
func memberTargets(args []string) (out []target, err error) {
	for _, arg := range args {
		kind, name, err := parseTarget([]string{arg}, proto.KindMember)
		if err != nil {
			return nil, err
		}
		out = append(out, target{kind: kind, names: []string{name}})
	}
	return out, nil
}

// living are the members that list chooses and that have a life; none is an error that says whose
// members are missing.
func (l *logReader) living(ctx context.Context, r *proto.ListRequest, whose string) (out []*shownMember, err error) {
	r.Kind, r.Namespace = proto.KindMember, l.namespace
	members, err := list[records.Member, records.ShownMember](ctx, l.cli, r)
	for _, m := range members {
		if m.Status.Token != "" {
			out = append(out, m)
		}
	}
	if err == nil && len(out) == 0 {
		err = fmt.Errorf("%s in namespace %s has no running members", whose, l.namespace)
	}
	return out, err
}

// member is one member by its name, with its containers where they matter.
func (l *logReader) member(ctx context.Context, name string) ([]*shownMember, error) {
	if !l.allContainers && !l.prefix {
		return []*shownMember{{Metadata: records.ShownMeta{Name: name}}}, nil
	}
	m, err := l.get(ctx, name)
	return []*shownMember{m}, err
}

func (l *logReader) get(ctx context.Context, member string) (*shownMember, error) {
	got, err := l.control.Get(ctx, &proto.GetRequest{Kind: proto.KindMember, Namespace: l.namespace, Name: member})
	if err != nil {
		return nil, err
	}
	return decode[records.Member, records.ShownMember](got)
}

// logsOf are the logs of members. ofSet: their lines start with the member, because a set was
// asked for.
func (l *logReader) logsOf(members []*shownMember, ofSet bool) (out []source) {
	for _, m := range members {
		names := []string{l.req.GetContainer()}
		if main, initial := containersOf(&m.Status); len(main) > 0 && names[0] == "" && (l.allContainers || l.prefix) {
			names = []string{main[0].Name}
			if l.allContainers {
				names = nil
				for _, c := range slices.Concat(initial, main) {
					names = append(names, c.Name)
				}
			}
		}
		for _, name := range names {
			from := source{member: m.Metadata.Name, container: name}
			switch {
			case l.prefix:
				from.prefix = "[pod/" + from.member + "/" + name + "] "
			case ofSet && l.allContainers:
				from.prefix = "[" + from.member + "/" + name + "] "
			case ofSet:
				from.prefix = "[" + from.member + "] "
			}
			out = append(out, from)
		}
	}
	return out
}

// one shows one log. One that is followed goes on where it was when a server, the node or the store was away.
func (l *logReader) one(ctx context.Context, from source, out, errOut io.Writer) error {
	req := gproto.Clone(&l.req).(*proto.LogsRequest)
	req.Member, req.Container = from.member, from.container
	if !req.GetFollow() {
		return l.once(ctx, req, out, errOut)
	}
	var last time.Time // of a line that was shown
	keep := func(to io.Writer) io.Writer { return &stampedLines{to: to, keep: l.req.GetTimestamps(), last: &last} }
	req.Timestamps = true
	for {
		began := time.Now()
		err := l.once(ctx, req, keep(out), keep(errOut))
		if status.Code(err) != codes.Unavailable || last.IsZero() && time.Since(began) < followedFor {
			return err
		}
		if !last.IsZero() {
			req.Tail, req.SinceUnixNanos = -1, last.UnixNano()+1
		}
		if !backoff.Sleep(ctx, againAfter) {
			return status.FromContextError(ctx.Err()).Err()
		}
	}
}

// followedFor is how long a log without a line must have been followed to be asked for again when that fails.
const followedFor = 2 * time.Second

// once shows what one call returns.
func (l *logReader) once(ctx context.Context, req *proto.LogsRequest, out, errOut io.Writer) error {
	stream, err := l.control.Logs(ctx, req)
	if err != nil {
		return err
	}
	for {
		f, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if status.Code(err) == codes.NotFound {
			return l.whyNone(ctx, req.GetMember(), err)
		}
		if err != nil {
			return err
		}
		if f.GetError() != "" {
			return errors.New(f.GetError())
		}
		to := out
		if f.GetChannel() == proto.ChannelErr {
			to = errOut
		}
		if _, err := to.Write(f.GetData()); err != nil {
			return err
		}
		if f.GetDone() {
			return nil
		}
	}
}

// stampedLines passes lines on, and remembers the time in front of the last one.
type stampedLines struct {
	to   io.Writer
	keep bool       // the time is passed on, too
	last *time.Time // shared by the outputs of one log
	rest []byte     // the start of a line that has not ended
}

// Write implements io.Writer.
func (w *stampedLines) Write(p []byte) (int, error) {
	w.rest = append(w.rest, p...)
	end := bytes.LastIndexByte(w.rest, '\n') + 1
	var text []byte
	for line := range bytes.Lines(w.rest[:end]) {
		stamp, rest, _ := bytes.Cut(line, []byte(" "))
		if at, err := time.Parse(time.RFC3339Nano, string(stamp)); err == nil {
			*w.last = at
			if !w.keep {
				line = rest
			}
		}
		text = append(text, line...)
	}
	w.rest = append(w.rest[:0], w.rest[end:]...)
	if len(text) == 0 {
		return len(p), nil
	}
	_, err := w.to.Write(text)
	return len(p), err
}

// whyNone is err, or for a member that is waited for and has no life: what it waits for.
func (l *logReader) whyNone(ctx context.Context, member string, err error) error {
	m, other := l.get(ctx, member)
	if other != nil || m.Status.Token != "" {
		return err
	}
	return fmt.Errorf("member %s has not started yet, so it has no logs: %s", member, memberState(m.Status.MemberStatus))
}

// several shows logs one after the other, or all at once when they are followed. A failure of one
// does not keep the others from being shown.
func (l *logReader) several(ctx context.Context, sources []source, out, errOut io.Writer) error {
	var (
		lock sync.Mutex // of out and errOut: lines are written whole
		all  sync.WaitGroup
		errs = make([]error, len(sources))
	)
	show := func(i int) {
		from := sources[i]
		to := &lineWriter{lock: &lock, out: out, prefix: from.prefix}
		toErr := &lineWriter{lock: &lock, out: errOut, prefix: from.prefix}
		err := l.one(ctx, from, to, toErr)
		if err = errors.Join(err, to.flush(), toErr.flush()); err != nil {
			errs[i] = fmt.Errorf("%s: %s", from.member, explainError(err))
		}
	}
	for i := range sources {
		if l.req.GetFollow() {
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
