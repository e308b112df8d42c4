// Package cache mirrors the store in memory and cuts plan.World out of it. It
// moves only by delivered watch events (SAFETY S18); engine, dispatch and control
// of one server share one Cache.
package cache

import (
	"context"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// Reader is what engine, dispatch and control read. Records are shared by all
// readers and must not be changed. Every method is one consistent read; use Look
// for several reads at one revision.
type Reader interface {
	// Wait blocks until the cache has reached rev (a linearizable-enough read after
	// one's own write), or ctx ends.
	Wait(ctx context.Context, rev store.Rev) error
	// Look calls f with the cache held still. f must not block nor keep the view.
	Look(f func(View))
	// Subscribe returns a subscription that is woken by every change. Its first
	// Take says All as soon as the cache has been loaded.
	Subscribe() *Subscription
}

// Memory is the value of known/<server> as far as it matters to a restore.
type Memory struct {
	Server string
	Nodes  map[spec.NodeName]spec.UID
	Epoch  int64
	Rev    store.Rev // the key's mod-revision
}

// History is a set's history as it is stored: records are shared and must not be
// changed. Pages are ascending; an unreadable base or page is left out.
type History struct {
	Base    *records.HistoryBase // nil: none
	BaseRev store.Rev            // also of an unreadable one
	Pages   []*records.HistoryPage
	// PageRevs holds the mod-revision of every page there is, by its number.
	PageRevs map[int64]store.Rev
}

// Changes names what moved. All is set after the cache was loaded anew, when a hold
// began or ended, and when a restore waits for other nodes or is complete: anything may have changed.
type Changes struct {
	All        bool
	Sets       map[spec.SetRef]bool   // any record of the set
	Nodes      map[spec.NodeName]bool // node, facts or session
	Services   map[spec.Namespace]bool
	Files      map[string]bool // keys configs/… and secrets/…
	Leadership bool
	Room       bool // a life left its node: another may fit there
	Rev        store.Rev
}
