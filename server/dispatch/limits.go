package dispatch

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

// What a node may report, and so have the servers keep (SAFETY S21).
const (
	// factsBytes bounds a node's facts, of which a large host has some 10 KiB.
	factsBytes = 64 << 10
	// maxHoldings bounds the lives that a node reports as open, and maxStrays those of
	// them that the store does not know. More are refused with the session: to forget some
	// would be to take them for over.
	maxHoldings     = 20_000
	maxUnknownLives = 4096
	// reportBytes bounds a report as it comes, pendingBytes those of one session that wait.
	reportBytes  = 64 << 10
	pendingBytes = 16 << 20
	// maxContainers bounds those of a report, wordBytes each word about one.
	maxContainers = 100
	wordBytes     = 256
	// maxResends bounds the sets that a node has asked for as a whole and was not sent yet.
	maxResends = 4096
	// maxFollowed bounds the sets that a node asks for beside those with a member there.
	maxFollowed = 4096
	// maxVolumeReports bounds the volumes of which a session has said something that is not stored.
	maxVolumeReports = 4096
)

// The limits beside LimitOwner.
const (
	// LimitReports: it reported too much at once, or what cannot be a report.
	LimitReports Limit = "reports"
	// LimitHello: its hello, or its inventory, is larger than it may be.
	LimitHello Limit = "hello"
	// LimitResend: it asked for more sets as a whole than it may.
	LimitResend Limit = "resend"
	// LimitFollow: it asks for more sets in full than it may.
	LimitFollow Limit = "follow"
	// LimitRate: it writes more than the store can keep. What it says is stored later.
	LimitRate Limit = "node-writes"
)

// sanitized is the report with what is too long cut, and without what could control the
// terminal of who reads it: a member's program has a say in messages.
func sanitized(r records.Report) records.Report {
	sanitize(&r.Cause, causeBytes)
	sanitize(&r.Message, messageBytes)
	sanitize(&r.Claim.Note, records.MaxNote)
	sanitize(&r.Claim.Busy, records.MaxBusy)
	r.Claim.BusyFor = max(r.Claim.BusyFor, 0)
	sanitize(&r.Hook.Message, messageBytes)
	r.Containers = slices.Clone(r.Containers[:min(len(r.Containers), maxContainers)])
	for i := range r.Containers {
		c := &r.Containers[i]
		sanitize(&c.Name, causeBytes)
		sanitize(&c.State, causeBytes)
		sanitize(&c.Cause, wordBytes)
		sanitize(&c.Image, wordBytes)
	}
	return r
}

// sanitize leaves of text what may be shown, and at most so many bytes.
func sanitize[T ~string](text *T, most int) { *text = truncate(T(scalar.Plain(string(*text))), most) }

// canBeMember is true for the identity of a member, which can be a key.
func canBeMember(id spec.Identity) bool {
	return scalar.ValidLabel(string(id.Namespace)) && scalar.ValidLabel(string(id.Set)) && id.Ordinal >= 0
}

// overLimit says what of an inventory and facts is more than a node may have; "": nothing.
func overLimit(i *proto.Inventory, facts []byte) string {
	switch n := len(i.GetHoldings()); {
	case len(facts) > factsBytes:
		return fmt.Sprintf("its facts have %d bytes, of at most %d", len(facts), factsBytes)
	case n > maxHoldings:
		return fmt.Sprintf("it reports %d lives, of at most %d", n, maxHoldings)
	}
	for l := range holdings(i) {
		if !canBeMember(l.ID) {
			return fmt.Sprintf("its inventory names %s, which cannot be a member", truncate(l.ID.String(), wordBytes))
		}
	}
	return ""
}

// The bytes that one node may have written: at once, and each second after that. The
// embedded store compacts every five minutes, so that its oldest change is gone before
// those of one node are 32 MiB.
const (
	allowanceBytes  = 8 << 20
	allowanceSecond = 64 << 10
)

// allowance is what each node may still have written.
type allowance struct {
	mu    sync.Mutex
	nodes map[spec.NodeName]balance // bounded: nodes that had a session
}

// balance is so many bytes as of a moment; below zero: it was overdrawn.
type balance struct {
	bytes int64
	at    time.Time
}

func newAllowance() *allowance { return &allowance{nodes: map[spec.NodeName]balance{}} }

// now is what the purse holds at that moment.
func (p balance) now(at time.Time) int64 {
	if p.at.IsZero() {
		return allowanceBytes
	}
	return min(allowanceBytes, p.bytes+int64(at.Sub(p.at).Seconds()*allowanceSecond))
}

// mayWrite reports whether node may have something written.
func (a *allowance) mayWrite(node spec.NodeName) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.nodes[node].now(time.Now()) > 0
}

// charge counts what was written for node.
func (a *allowance) charge(node spec.NodeName, bytes int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	a.nodes[node] = balance{a.nodes[node].now(now) - int64(bytes), now}
}

// Limit names why something that a node said was refused; it is the label of a metric.
type Limit string

// The limits.
const (
	// LimitOwner: it reported a volume that is not its own.
	LimitOwner Limit = "volume-owner"
)

// refusals counts what was refused of nodes, and logs each kind once for each node.
type refusals struct {
	log *slog.Logger

	mu     sync.Mutex
	counts map[Limit]int64
	logged map[refusal]bool // bounded: nodes that have a session, times kinds
}

type refusal struct {
	node  spec.NodeName
	limit Limit
}

func newRefusals(log *slog.Logger) *refusals {
	return &refusals{log: log, counts: map[Limit]int64{}, logged: map[refusal]bool{}}
}

// add counts n refusals; why is that of one of them.
func (f *refusals) add(node spec.NodeName, limit Limit, n int, why string) {
	f.mu.Lock()
	f.counts[limit] += int64(n)
	known := f.logged[refusal{node, limit}]
	f.logged[refusal{node, limit}] = true
	f.mu.Unlock()
	if !known {
		f.log.Warn("message of a node refused", "node", node, "reason", string(limit), "err", why)
	}
}

// Refusals counts what was refused of nodes since the server started.
func (s *Server) Refusals() map[Limit]int64 {
	s.refusals.mu.Lock()
	defer s.refusals.mu.Unlock()
	return maps.Clone(s.refusals.counts)
}
