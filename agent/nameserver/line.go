package nameserver

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/stead-project/stead/dnsd"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// line is one connection with the process.
type line struct {
	f     *Feeder
	c     *net.UnixConn
	out   *json.Encoder
	group sync.WaitGroup // what follows for it

	fed  bool                             // the process has records
	had  map[spec.SetRef]records.Snapshot // what it was sent; nil: nothing
	sent int                              // the number of that; 0: nothing
}

// begin asks to feed, and returns what the process is doing, and what reads its reports.
func (l *line) begin() (*state, *json.Decoder, error) {
	if err := sendFirst(l.c, request{Ask: askFeed}, nil); err != nil {
		return nil, nil, err
	}
	var first report
	in := json.NewDecoder(l.c)
	if err := in.Decode(&first); err != nil {
		return nil, nil, err
	}
	if first.State == nil {
		return nil, nil, errors.New("the name server does not say what it does")
	}
	l.fed, l.out = first.State.Fed, json.NewEncoder(l.c)
	return first.State, in, l.c.SetDeadline(time.Time{})
}

// run feeds the process until that goes no more, and has it answer. before are those that it takes over from.
func (l *line) run(ctx context.Context, before []string) error {
	s, in, err := l.begin()
	if err != nil {
		return err
	}
	f := l.f
	ctx, stop := context.WithCancel(ctx)
	defer l.group.Wait()
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- l.read(ctx, in) }()
	f.mu.Lock()
	f.up = true
	f.mu.Unlock()
	for serving := s.Serving && len(before) == 0; ; {
		shown, err := l.send()
		if err == nil && !serving && shown {
			serving = true
			err = f.serve(before)
		}
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case err := <-ended:
			return err
		case <-f.changed.C():
		}
	}
}

// serve has the process answer, and those before it end.
func (f *Feeder) serve(before []string) error {
	_, err := ask(f.path, request{Ask: askServe, Addresses: addressesOf(f.sockets), Retire: before}, f.sockets)
	return err
}

// send sends what there is to be sent. shown: the process has all that is known.
func (l *line) send() (shown bool, err error) {
	f := l.f
	f.mu.Lock()
	newest, number, done := f.newest, f.number, f.done
	due := number > l.sent && (f.listed || !l.fed)
	answers, count := f.answers, f.asked
	f.answers, f.asked = nil, false
	f.mu.Unlock()
	if due {
		var c *change
		c, l.had = difference(l.had, &newest)
		c.Number = number
		if err := l.write(order{Zone: c}); err != nil {
			return false, err
		}
		l.sent = number
	}
	for i := range answers { // each came after the records that it is about
		if err := l.write(order{Followed: &answers[i]}); err != nil {
			return false, err
		}
	}
	if count {
		if err := l.write(order{Count: true}); err != nil {
			return false, err
		}
	}
	return number == 0 || l.sent == 0 || done >= l.sent, nil
}

// write sends one order; a process that does not read is frozen, and found again when it does.
func (l *line) write(o order) error {
	if err := l.c.SetWriteDeadline(time.Now().Add(sendTime)); err != nil {
		return err
	}
	return l.out.Encode(o)
}

// read takes reports until the connection ends.
func (l *line) read(ctx context.Context, in *json.Decoder) error {
	for {
		var r report
		if err := in.Decode(&r); err != nil {
			return err
		}
		switch {
		case r.Done != 0:
			l.f.isShown(r.Done)
		case r.Counts != nil:
			l.f.takeCounts(*r.Counts)
		case r.Asked != nil:
			l.f.cfg.Asked(*r.Asked)
		case r.Follow != nil:
			l.group.Go(func() { l.follow(ctx, r.Follow) })
		}
	}
}

// followTime is how long an interest is followed at most; the process waits no longer.
const followTime = 5 * time.Second

// follow answers an interest; what it is about is sent before the answer.
func (l *line) follow(ctx context.Context, w *follow) {
	ctx, cancel := context.WithTimeout(ctx, followTime)
	defer cancel()
	a := followed{Number: w.Number}
	if err := l.f.cfg.Follow(ctx, dnsd.Interest{Set: w.Set, Address: w.Address}); err != nil {
		a.Error = err.Error()
	}
	l.f.mu.Lock()
	l.f.answers = append(l.f.answers, a)
	l.f.mu.Unlock()
	l.f.changed.Notify()
}

func (f *Feeder) isShown(number int) {
	f.mu.Lock()
	f.done = number
	close(f.shown)
	f.shown = make(chan struct{})
	f.mu.Unlock()
	f.changed.Notify() // it may answer now
}

func (f *Feeder) takeCounts(c dnsd.Counts) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.counts = c
	close(f.counted)
	f.counted = make(chan struct{})
}
