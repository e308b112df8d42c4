// Package cache mirrors the store in memory and cuts plan.World out of it. It
// moves only by delivered watch events (SAFETY S18); engine, dispatch and control
// of one server share one Cache.
package cache

import (
	"context"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// Reader is what engine, dispatch and control read. Records are shared by all
// readers and must not be changed. Every method is one consistent look; use Look
// for several reads at one revision.
type Reader interface {
	// Wait blocks until the cache has reached rev (a linearizable-enough read after
	// one's own write), or ctx ends.
	Wait(ctx context.Context, rev store.Rev) error
	// Look calls f with the cache held still. f must not block nor keep the view.
	Look(f func(View))
	// Subscribe returns a subscription that is woken by every change. Its first
	// Take says All as soon as the cache has been loaded.
	Subscribe() Subscription
}

// View is the cache at one revision.
type View interface {
	Rev() store.Rev
	Epoch() int64
	// EpochRev is the mod-revision of the epoch's key; 0: absent.
	EpochRev() store.Rev
	ClusterID() string
	// Hold is the word that the store went back, while it stands; nil: nobody says so.
	Hold() *records.Hold
	// Count is that of the last restore, and its key's mod-revision; nil and 0: absent, nil
	// and not 0: unreadable. While it is open it has the nodes of all Memories, too.
	Count() (*records.Count, store.Rev)
	// Memories are what servers remembered when they found the store held, or restored, by
	// the names of servers. One that cannot be read has no nodes.
	Memories() []Memory
	// HellosRev is the mod-revision of the key hellos; 0: absent. As long as it is the same
	// no node joined, and none has other strays.
	HellosRev() store.Rev
	// Leader is the value of the leader key ("" when nobody leads) and its create-revision.
	Leader() (value string, created store.Rev)
	Sets() []spec.SetRef
	Set(ref spec.SetRef) (*records.Set, store.Rev)
	// World is the plan's world of one set (also when only its volumes or
	// identities remain: Set is nil then); Free, VolumeID and Now are left to the caller.
	World(ref spec.SetRef) plan.World
	Member(id spec.Identity) (*records.Member, store.Rev)
	Report(id spec.Identity) (*records.Report, store.Rev)
	Identity(id spec.Identity) (*records.IdentityRecord, store.Rev)
	// RequestRev is the mod-revision of requests/…; 0: absent.
	RequestRev(id spec.Identity) store.Rev
	Status(ref spec.SetRef) (*records.SetStatus, store.Rev)
	Revision(ref spec.SetRef, h spec.RevisionHash) (*records.Revision, store.Rev)
	Volumes(ref spec.SetRef) []*records.Volume
	VolumeRev(id spec.Identity, c spec.ClaimName) store.Rev
	// VolumeReport is what a node said of a volume, whichever turn it was in; nil: nothing.
	VolumeReport(id spec.Identity, c spec.ClaimName, v records.VolumeID) *records.VolumeReport
	// VolumeReportRev is its mod-revision, also of an unreadable one; 0: absent.
	VolumeReportRev(id spec.Identity, c spec.ClaimName, v records.VolumeID) store.Rev
	// VolumeRequest is what a person asks of the volume of a claim, and its mod-revision;
	// nil and 0: nothing.
	VolumeRequest(id spec.Identity, c spec.ClaimName) (*records.VolumeRequest, store.Rev)
	// VolumesOn lists the volumes about which node has an order, and VolumeReportsOn what
	// it said of volumes; both in the order of their keys.
	VolumesOn(node spec.NodeName) []*records.Volume
	VolumeReportsOn(node spec.NodeName) []*records.VolumeReport
	// Volume is the volume of a claim now; nil: none.
	Volume(id spec.Identity, c spec.ClaimName) *records.Volume
	// Remains lists the sets that are gone and leave something to do: volumes that
	// are being given up or brought back, or of which a person asks something, or that the
	// set was bootstrapped.
	Remains() []spec.SetRef
	// Strays are the lives of an identity that nodes run and the store does not know.
	Strays(id spec.Identity) []plan.NodeStray
	// MembersOn lists the identities whose life is on node, sorted.
	MembersOn(node spec.NodeName) []spec.Identity
	Nodes() []plan.Node
	// NodeRevs are the mod-revisions of nodes/<name>, nodefacts/<name> and
	// sessions/<name>; 0: absent.
	NodeRevs(node spec.NodeName) (record, facts, session store.Rev)
	// FenceRev is the mod-revision of fences/<name>; 0: absent.
	FenceRev(node spec.NodeName) store.Rev
	Session(node spec.NodeName) (*records.Session, store.Rev)
	// Bare tells whether node has no session key, not even an unreadable one, and since when
	// this cache has seen that: as long as since is the same there was none in between.
	Bare(node spec.NodeName) (since store.Rev, bare bool)
	Services(ns spec.Namespace) []*records.ServiceRecord
	Config(ns spec.Namespace, name string) (*records.ConfigRecord, store.Rev)
	Secret(ns spec.Namespace, name string) (*records.SecretRecord, store.Rev)
	Events(ref spec.SetRef) []*records.Event
	// EventNames holds the same by the last element of their keys.
	EventNames(ref spec.SetRef) map[string]*records.Event
	// History is what is stored of the set's history.
	History(ref spec.SetRef) History
	// LastChange names the newest change of the set's history; zero: there is none.
	LastChange(ref spec.SetRef) records.ChangeID
	// Addresses holds all address records by the address's text; an unreadable one
	// stands there without identity: it is not free.
	Addresses() map[string]*records.AddressRecord
	// AddressRev is the mod-revision of addresses/<ip>; 0: absent.
	AddressRev(ip string) store.Rev
	Bootstrapped(uid spec.UID) bool
	// WasBootstrapped is the mod-revision of what is remembered of a bootstrapped set that
	// was deleted and left volumes; 0: absent.
	WasBootstrapped(ref spec.SetRef) store.Rev
	// Used reports whether a life was ready on a volume of the set that is kept.
	Used(ref spec.SetRef) bool
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

// Subscription gathers what changed since it was last asked; never loses a wake-up.
type Subscription interface {
	// C receives when there is something to Take.
	C() <-chan struct{}
	// Take returns what changed since the last Take, and starts anew.
	Take() Changes
	Close()
}

// Changes names what moved. All is set after the cache was loaded anew, when a hold
// began or ended, and when a restore waits for other nodes or is complete: look at everything.
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
