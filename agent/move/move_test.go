package move_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stead-project/stead/agent/move"
	"github.com/stead-project/stead/agent/move/peer"
	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/agent/volume"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/moves"
	"github.com/stead-project/stead/spec"
)

const moveID = "0000000000000000000000000000000a"

var (
	db0   = spec.Identity{Namespace: "default", Set: "db", Ordinal: 0}
	claim = moves.MoveClaim{Claim: "data", Old: strings.Repeat("a", 32), New: strings.Repeat("b", 32), Number: 1, Class: "local", SizeBytes: 32 << 20}
)

// node is a host with the real parts, whose rounds the test makes by hand.
type node struct {
	t       *testing.T
	dir     string
	sized   bool // the class local has sizes that are enforced
	volumes *volume.Volumes
	copier  *peer.Exchange
	mover   *move.Mover
	now     time.Time
	open    spec.Token
	busy    bool // a process runs
	onOpen  func()
	said    []moves.MoveReport
}

func newNode(t *testing.T, sized bool) *node {
	n := &node{t: t, dir: t.TempDir(), now: time.Now(), sized: sized}
	n.start()
	return n
}

// start starts the agent, anew after the one before.
func (n *node) start() {
	n.t.Helper()
	config := volume.Config{Root: filepath.Join(n.dir, "root"), RunDir: filepath.Join(n.dir, "run"), ClusterID: "c"}
	if n.sized {
		config.Sized = []string{claim.Class}
	}
	v, err := volume.New(config)
	if err != nil {
		n.t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	n.volumes, n.copier = v, peer.New(peer.Config{Listen: "127.0.0.1:0", Now: time.Now, Logger: log})
	n.t.Cleanup(func() { n.copier.Close() })
	n.said = nil
	n.mover = move.New(move.Config{
		Volumes: volume.NewMoves(v), Copier: n.copier,
		Open: func(spec.Identity) spec.Token {
			if n.onOpen != nil {
				n.onOpen()
			}
			return n.open
		},
		Empty:      func(context.Context, spec.Identity) (bool, error) { return !n.busy, nil },
		Reported:   func(all []moves.MoveReport) { n.said = all },
		RetryFirst: time.Second, RetryMost: time.Minute, Between: time.Second,
		Now: func() time.Time { return n.now }, Logger: log,
	})
	if err := n.mover.Begin(n.t.Context()); err != nil {
		n.t.Fatal(err)
	}
}

// settle works until nothing is due but what waits.
func (n *node) settle() {
	for range 20 {
		n.mover.Round(n.t.Context(), func(work func()) { work() })
	}
	n.now = n.now.Add(2 * time.Minute)
}

func (n *node) take(orders ...moves.MoveOrder) moves.MoveReport {
	n.t.Helper()
	n.mover.Take(orders, 1)
	n.settle()
	if len(n.said) == 0 {
		return moves.MoveReport{}
	}
	return n.said[0]
}

func (n *node) ensure(id string, fresh bool) (string, error) {
	return n.volumes.Ensure(n.t.Context(), db0, records.MemberVolume{
		Claim: claim.Claim, ID: records.VolumeID(id), Number: claim.Number, Class: claim.Class, SizeBytes: claim.SizeBytes,
	}, fresh, nil)
}

// journey is a move between two nodes, with the servers' part played by the test.
type journey struct {
	t        *testing.T
	from, to *node
	sums     []moves.MoveSum
}

func newJourney(t *testing.T) *journey { return journeyOf(t, newNode(t, false), newNode(t, false)) }

func journeyOf(t *testing.T, from, to *node) *journey {
	j := &journey{t: t, from: from, to: to}
	path, err := j.from.ensure(claim.Old, true)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(path, "file"), []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	return j
}

func (j *journey) order(role moves.MoveRole, phase moves.MovePhase) moves.MoveOrder {
	o := moves.MoveOrder{
		ID: db0, Move: moveID, Role: role, Phase: phase, Peer: "peer", PeerAddress: netip.MustParseAddr("127.0.0.1"),
		Claims: []moves.MoveClaim{claim},
	}
	other := j.from
	if role == moves.MoveSource {
		other = j.to
	}
	if len(other.said) > 0 {
		o.PeerKey, o.PeerPort = other.said[0].Key, other.said[0].Port
	}
	if role == moves.MoveTarget && phase == moves.MoveSealing {
		o.Sums = j.sums
	}
	return o
}

// both tells both nodes of a phase, until each knows the other.
func (j *journey) both(phase moves.MovePhase) (source, target moves.MoveReport) {
	j.t.Helper()
	for range 3 {
		source = j.from.take(j.order(moves.MoveSource, phase))
		if source.State == moves.MoveSealed && source.Sums != nil {
			j.sums = source.Sums
		}
		target = j.to.take(j.order(moves.MoveTarget, phase))
	}
	return source, target
}

func (j *journey) want(what string, got moves.MoveReport, state moves.MoveState) {
	j.t.Helper()
	if got.State != state {
		j.t.Fatalf("%s: said is %+v, want %s", what, got, state)
	}
}

func TestAMove(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		t.Run(fmt.Sprintf("agents restart %v", restarts), func(t *testing.T) {
			j := newJourney(t)
			again := func() {
				if restarts {
					j.from.start()
					j.to.start()
				}
			}
			s, d := j.both(moves.MoveCopying)
			j.want("source", s, moves.MoveOffered)
			j.want("target", d, moves.MoveWarm)
			again()
			s, d = j.both(moves.MoveSealing)
			j.want("source", s, moves.MoveSealed)
			j.want("target", d, moves.MoveCopied)
			again()
			if _, err := j.from.ensure(claim.Old, false); !errors.Is(err, runtime.ErrSealed) {
				t.Errorf("the source starts a life: %v", err)
			}
			s, d = j.both(moves.MoveFlipped)
			j.want("source", s, moves.MoveSealed)
			j.want("target", d, moves.MoveArrived)
			again()
			path, err := j.to.ensure(claim.New, false)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := os.ReadFile(filepath.Join(path, "file")); err != nil || string(got) != "precious" {
				t.Errorf("%q, %v", got, err)
			}
			if got := j.to.take(j.order(moves.MoveTarget, moves.MoveAborting)); got.State != moves.MoveArrived {
				t.Errorf("of a store that went back: %+v", got)
			}
			if got := j.to.take(); got.State != "" {
				t.Errorf("of what is over is said %+v", got)
			}
			if got := j.from.take(); got.State != moves.MoveSealed {
				t.Errorf("of a seal that nobody names is said %+v", got)
			}
		})
	}
}

// TestAnUnknownSealIsSaidWithItsMove: what the servers need to make the record of the move anew, also after a restart.
func TestAnUnknownSealIsSaidWithItsMove(t *testing.T) {
	j := newJourney(t)
	j.both(moves.MoveCopying)
	j.both(moves.MoveSealing)
	j.from.start()
	got := j.from.take()
	if o := j.order(moves.MoveSource, moves.MoveSealing); got.State != moves.MoveSealed || got.Peer != o.Peer || len(got.Claims) != 1 || got.Claims[0] != claim {
		t.Errorf("it says %+v", got)
	}
}

func TestAMoveIsAborted(t *testing.T) {
	j := newJourney(t)
	j.both(moves.MoveCopying)
	j.both(moves.MoveSealing)
	s, d := j.both(moves.MoveAborting)
	j.want("source", s, moves.MoveSealed)
	j.want("target", d, moves.MoveDiscarded)
	o := j.order(moves.MoveSource, moves.MoveAborting)
	o.Unseal = true
	j.want("source", j.from.take(o), moves.MoveUnsealed)
	if _, err := j.from.ensure(claim.Old, false); err != nil {
		t.Error(err)
	}
	if s, d := j.from.take(), j.to.take(); s.State != "" || d.State != "" {
		t.Errorf("said is %+v, %+v", s, d)
	}
}

// Neither a life nor a process is locked out of its volume, also one that begins while it is sealed.
func TestNothingIsSealedThatALifeMayUse(t *testing.T) {
	j := newJourney(t)
	j.both(moves.MoveCopying)
	j.from.open = spec.Token{Epoch: 1, Number: 1}
	s, _ := j.both(moves.MoveSealing)
	j.want("a life is open", s, moves.MoveOffered)
	j.from.open, j.from.busy = spec.Token{}, true
	s, _ = j.both(moves.MoveSealing)
	j.want("a process runs", s, moves.MoveOffered)
	j.from.busy = false
	looks := 0
	j.from.onOpen = func() {
		looks++
		if looks == 2 {
			j.from.open = spec.Token{Epoch: 1, Number: 2}
		}
	}
	s, _ = j.both(moves.MoveSealing)
	j.want("a life begins meanwhile", s, moves.MoveOffered)
	if s.Error == "" {
		t.Error("nobody is told why")
	}
	if _, err := j.from.ensure(claim.Old, false); err != nil {
		t.Errorf("it is locked out: %v", err)
	}
	j.from.open, j.from.onOpen = spec.Token{}, nil
	s, d := j.both(moves.MoveSealing)
	j.want("source", s, moves.MoveSealed)
	j.want("target", d, moves.MoveCopied)
}

// A store that knows nothing of a move in a later epoch discards nothing by that.
func TestWhatWasCopiedOutlivesAnotherEpoch(t *testing.T) {
	j := newJourney(t)
	j.both(moves.MoveCopying)
	_, d := j.both(moves.MoveSealing)
	j.want("target", d, moves.MoveCopied)
	j.to.mover.Take(nil, 2)
	j.to.settle()
	if len(j.to.said) != 1 || j.to.said[0].State != moves.MoveCopied || j.to.said[0].Error == "" {
		t.Fatalf("said is %+v", j.to.said)
	}
	_, d = j.both(moves.MoveFlipped)
	j.want("target", d, moves.MoveArrived)
}
