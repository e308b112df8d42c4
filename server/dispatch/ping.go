package dispatch

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stead-project/stead/internal/notify"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/store"
)

// renewals bounds the renewals that are under way at once.
const renewals = 16

// pinger answers pings in rounds: all that wait are renewed, then one linearizable
// read serves them all. A ping that arrives during a round waits for the next one,
// so each read was started after the pings it answers arrived (SAFETY S5).
type pinger struct {
	store store.Store
	known func() records.Known
	limit time.Duration // of one round
	added *notify.Signal

	mu      sync.Mutex
	waiting map[*session]int64 // newest ping of each
}

func newPinger(s store.Store, ttl time.Duration, known func() records.Known) *pinger {
	return &pinger{store: s, known: known, limit: min(ttl/3, storeTime), added: notify.New(), waiting: map[*session]int64{}}
}

// add asks for an answer to a ping; an older one of the session needs none then.
func (p *pinger) add(se *session, id int64) {
	p.mu.Lock()
	p.waiting[se] = id
	p.mu.Unlock()
	p.added.Notify()
}

func (p *pinger) forget(se *session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.waiting, se)
}

func (p *pinger) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.added.C():
		}
		p.round(ctx, p.take())
	}
}

// take returns the pings that wait for a round.
func (p *pinger) take() map[*session]int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	round := p.waiting
	p.waiting = map[*session]int64{}
	return round
}

// round answers what it can; a node without an answer pings again.
func (p *pinger) round(ctx context.Context, pings map[*session]int64) {
	ctx, cancel := context.WithTimeout(ctx, p.limit)
	defer cancel()
	renewed := p.renew(ctx, pings)
	for part := range slices.Chunk(renewed, store.MaxOps-1) {
		keys := make([]string, len(part))
		for i, se := range part {
			keys[i] = store.SessionKey(se.node)
		}
		rev, kvs, err := p.store.Get(ctx, append(keys, store.HoldKey)...)
		if err != nil {
			return // no evidence, no pong
		}
		pong := pong{read: rev, known: p.known()}
		_, pong.held = kvs[store.HoldKey]
		for i, se := range part {
			if se.owns(kvs[keys[i]]) {
				pong.id = pings[se]
				se.out.addPong(pong)
			} else {
				se.cancel(errSessionOver)
			}
		}
	}
}

// renew returns the sessions whose lease was renewed.
func (p *pinger) renew(ctx context.Context, pings map[*session]int64) []*session {
	var (
		mu      sync.Mutex
		renewed []*session
		wg      sync.WaitGroup
		slots   = make(chan struct{}, renewals)
	)
	for se := range pings {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			switch err := p.store.Renew(ctx, store.LeaseID(se.id)); {
			case errors.Is(err, store.ErrLeaseGone):
				se.abort(codes.Aborted, "session expired, reconnect")
			case err == nil:
				mu.Lock()
				renewed = append(renewed, se)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return renewed
}

// owns reports whether kv, read linearizably, is still this session's own key; zero: it is gone.
func (se *session) owns(kv store.KV) bool {
	record, err := store.Decode[records.Session](kv)
	return err == nil && kv.Mod == se.rev && record.ID == se.id && record.UID == se.uid && record.Boot == se.boot
}
