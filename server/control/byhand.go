package control

import (
	"time"

	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/store"
)

// Declare is what "stead restore" writes, in order, decided by v: for a simulation, which owns
// time and chance. step is how far the epoch is raised above the highest known one.
func Declare(v cache.View, by string, at time.Time, step int64) ([]store.Txn, error) {
	d, err := declare(v, by, at, step)
	return append([]store.Txn{d.Txn}, d.sessions...), err
}

// Excuse is what "stead restore --off" writes, decided by v: for a simulation.
func Excuse(v cache.View, off []string, by string) (store.Txn, error) {
	d, err := excuse(v, off, by)
	return d.Txn, err
}
