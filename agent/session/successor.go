package session

import (
	"errors"
	"math/rand/v2"
	"time"

	"github.com/stead-project/stead/internal/notify"
	"github.com/stead-project/stead/trust"
)

// moveSpread is within which time nodes renew that were told of another authority, so that not all do at once.
const moveSpread = 5 * time.Second

// errBehind: a server that has not heard of the authority yet answered.
var errBehind = errors.New("the server still signs with the authority that is being replaced")

// successor is the authority that takes the place of another, as servers told.
type successor struct {
	moved  *notify.Signal
	spread time.Duration
	id     string        // "": none was told of
	at     time.Duration // when to get its certificate, on the link's clock
}

// AuthorityTold takes the id of the authority that signs certificates, as a server told. A node that has one of another renews it.
func (l *Link) AuthorityTold(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if id == l.told.id {
		return
	}
	l.told.id, l.told.at = id, l.clock()+rand.N(max(l.told.spread, 1))
	l.told.moved.Notify()
}

func (l *Link) moved() <-chan struct{} {
	if l.told.moved == nil {
		return nil
	}
	return l.told.moved.C()
}

// behind reports whether the certificate is of another authority than the one that signs.
func (l *Link) behind() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.isBehind()
}

func (l *Link) isBehind() bool {
	return l.told.id != "" && l.mine != nil && trust.ShortID(l.mine.CA) != l.told.id
}

// left is how long until the certificate is due.
func (l *Link) left() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	due := l.due
	if l.isBehind() {
		due = min(due, l.told.at)
	}
	return due - l.clock()
}
