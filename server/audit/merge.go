package audit

import (
	"cmp"
	"context"
	"sync"

	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/proto"
)

// source is the entries of one server, oldest first.
type source struct {
	name string // "": this one
	in   chan *proto.AuditEntry
	err  error // once in is closed
	head *proto.AuditEntry
}

// begin has read send the entries, until it ends or ctx does.
func begin(ctx context.Context, name string, read func(send func(*proto.AuditEntry) error) error) *source {
	s := &source{name: name, in: make(chan *proto.AuditEntry, 64)}
	go func() {
		defer close(s.in)
		s.err = read(func(e *proto.AuditEntry) error {
			select {
			case s.in <- e:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}()
	return s
}

// next has the next entry at the head. Without one there is none, or none before what follows. Another server's failure is
// an entry of its own; this one's is an error.
func (s *source) next() (missing *proto.AuditEntry, err error) {
	s.head = nil
	e, open := <-s.in
	switch {
	case !open && s.err != nil && s.name == "":
		return nil, s.err
	case !open && s.err != nil:
		err, s.err = s.err, nil // said once
		return &proto.AuditEntry{Missing: "server " + s.name + ": " + status.Convert(err).Message()}, nil
	case open && !e.GetSynced():
		s.head = e
	}
	return nil, nil
}

// merge sends what is there of all, in the order of their servers' clocks.
func merge(sources []*source, send func(*proto.AuditEntry) error) error {
	advance := func(s *source) error {
		missing, err := s.next()
		if err == nil && missing != nil {
			err = send(missing)
		}
		return err
	}
	for _, s := range sources {
		if err := advance(s); err != nil {
			return err
		}
	}
	for {
		var first *source
		for _, s := range sources {
			if s.head != nil && (first == nil || s.head.GetAtUnixNanos() < first.head.GetAtUnixNanos()) {
				first = s
			}
		}
		if first == nil {
			return nil
		}
		if err := send(first.head); err != nil {
			return err
		}
		if err := advance(first); err != nil {
			return err
		}
	}
}

// follow sends what comes, as it comes, until this server's source ends, which stop makes it do, or sending fails.
func follow(stop func(), sources []*source, send func(*proto.AuditEntry) error) error {
	var group sync.WaitGroup
	var mu sync.Mutex
	var failed error
	pass := func(s *source) (more bool) {
		missing, err := s.next()
		mu.Lock()
		defer mu.Unlock()
		if e := cmp.Or(s.head, missing); err == nil && e != nil {
			err = send(e)
		}
		if err != nil {
			failed = cmp.Or(failed, err)
			stop()
		}
		return err == nil && s.head != nil
	}
	for _, s := range sources {
		group.Go(func() {
			for pass(s) {
			}
		})
	}
	group.Wait()
	return failed
}
