package step

import (
	"reflect"
	"testing"

	"github.com/stead-project/stead/records/moves"
	"github.com/stead-project/stead/spec"
)

var (
	sums  = []moves.MoveSum{{Claim: "data", Sum: "1"}}
	other = []moves.MoveSum{{Claim: "data", Sum: "2"}}
)

func order(p moves.MovePhase, change ...func(*moves.MoveOrder)) *moves.MoveOrder {
	o := &moves.MoveOrder{Phase: p, PeerKey: "k", PeerPort: 1}
	for _, c := range change {
		c(o)
	}
	return o
}

func withSums(o *moves.MoveOrder) { o.Sums = sums }
func unseal(o *moves.MoveOrder)   { o.Unseal = true }
func noPeer(o *moves.MoveOrder)   { o.PeerPort = 0 }

func TestChooseOfASource(t *testing.T) {
	sealed := Disk{Sealed: true, AllSealed: true}
	for name, c := range map[string]struct {
		v    Situation
		want Next
	}{
		"nothing is known of the orders":                    {Situation{}, Next{}},
		"nobody knows of it and nothing is left":            {Situation{Told: true}, Next{Op: Forget}},
		"a seal stays that no order names":                  {Situation{Told: true, SameEpoch: true, Disk: sealed}, Next{Say: moves.MoveSealed, Error: unknownSeal}},
		"a seal is said before any order":                   {Situation{Disk: sealed}, Next{Say: moves.MoveSealed}},
		"it offers":                                         {Situation{Order: order(moves.MoveCopying)}, Next{Op: Offer, Say: moves.MoveOffered}},
		"it offers on while its member stops":               {Situation{Order: order(moves.MoveStopping)}, Next{Op: Offer, Say: moves.MoveOffered}},
		"it seals":                                          {Situation{Order: order(moves.MoveSealing)}, Next{Op: Seal, Say: moves.MoveOffered}},
		"it seals the rest":                                 {Situation{Order: order(moves.MoveSealing), Disk: Disk{Sealed: true}}, Next{Op: Seal, Say: moves.MoveOffered}},
		"sealed is not said before it is summed":            {Situation{Order: order(moves.MoveSealing), Disk: sealed}, Next{Op: Sum, Say: moves.MoveOffered}},
		"sealed":                                            {Situation{Order: order(moves.MoveSealing), Disk: sealed, Sums: sums}, Next{Op: Offer, Say: moves.MoveSealed, Sums: sums}},
		"the store went back":                               {Situation{Order: order(moves.MoveCopying), Disk: sealed}, Next{Op: Offer, Say: moves.MoveSealed}},
		"flipped: the seal stays":                           {Situation{Order: order(moves.MoveFlipped, unseal), Disk: sealed}, Next{Say: moves.MoveSealed}},
		"flipped, and nothing of it is here":                {Situation{Order: order(moves.MoveFlipped), Disk: Disk{AllSealed: true}}, Next{Say: moves.MoveFailed, Error: notSealed}},
		"what goes back is noted before the seal is broken": {Situation{Order: order(moves.MoveBack), Disk: sealed}, Next{Op: GiveBack, Say: moves.MoveSealed}},
		"also when nothing is sealed":                       {Situation{Order: order(moves.MoveBack)}, Next{Op: GiveBack, Say: moves.MoveSealed}},
		"then the seal is broken":                           {Situation{Order: order(moves.MoveBack), Back: true, Disk: sealed}, Next{Op: Unseal, Say: moves.MoveSealed}},
		"whatever is ordered then":                          {Situation{Order: order(moves.MoveFlipped), Back: true, Disk: Disk{Sealed: true}}, Next{Op: Unseal, Say: moves.MoveSealed}},
		"or nothing is":                                     {Situation{Told: true, Back: true, Disk: sealed}, Next{Op: Unseal, Say: moves.MoveSealed}},
		"it is back":                                        {Situation{Order: order(moves.MoveBack), Back: true}, Next{Say: moves.MoveIsBack}},
		"it says what it has not":                           {Situation{Order: order(moves.MoveBack), Back: true, Disk: Disk{AllSealed: true, Absent: []spec.ClaimName{"data"}}}, Next{Say: moves.MoveIsBack, Absent: []spec.ClaimName{"data"}}},
		"it is back for a store that flips again":           {Situation{Order: order(moves.MoveFlipped), Back: true}, Next{Say: moves.MoveIsBack}},
		"and is not sealed again":                           {Situation{Order: order(moves.MoveSealing), Back: true}, Next{Say: moves.MoveIsBack}},
		"nor offered":                                       {Situation{Order: order(moves.MoveCopying), Back: true}, Next{Say: moves.MoveIsBack}},
		"nor forgotten":                                     {Situation{Told: true, SameEpoch: true, Back: true, Disk: Disk{AllSealed: true}}, Next{}},
		"an abort alone breaks no seal":                     {Situation{Order: order(moves.MoveAborting), Disk: sealed}, Next{Say: moves.MoveSealed}},
		"the order does":                                    {Situation{Order: order(moves.MoveAborting, unseal), Disk: sealed}, Next{Op: Unseal, Say: moves.MoveSealed}},
		"unsealed":                                          {Situation{Order: order(moves.MoveAborting, unseal), Disk: Disk{}}, Next{Say: moves.MoveUnsealed}},
		"aborting before it was sealed":                     {Situation{Order: order(moves.MoveAborting)}, Next{Say: moves.MoveOffered}},
		"it failed":                                         {Situation{Order: order(moves.MoveCopying), Failed: "why"}, Next{Say: moves.MoveFailed, Error: "why"}},
		"what failed is unsealed all the same":              {Situation{Order: order(moves.MoveAborting, unseal), Failed: "why", Disk: Disk{Sealed: true}}, Next{Op: Unseal, Say: moves.MoveSealed}},
		"all volumes were given up: no seal is left":        {Situation{Told: true, Disk: Disk{AllSealed: true}}, Next{Op: Forget}},
	} {
		c.v.Role = moves.MoveSource
		if got := Choose(c.v); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %+v, want %+v", name, got, c.want)
		}
	}
}

func TestChooseOfATarget(t *testing.T) {
	half, there := Disk{Staged: true}, Disk{Arrived: true, AllArrived: true}
	whole := Disk{Staged: true, Copied: sums}
	copied := Next{Say: moves.MoveCopied, Sums: sums}
	for name, c := range map[string]struct {
		v    Situation
		want Next
	}{
		"it waits for its peer":                                 {Situation{Order: order(moves.MoveCopying, noPeer)}, Next{Say: moves.MoveCopyingNow, Error: "the other node offers nothing yet"}},
		"what is whole is kept for whom knows no sums":          {Situation{Order: order(moves.MoveSealing, noPeer), Disk: whole}, copied},
		"and what is another":                                   {Situation{Order: order(moves.MoveSealing, noPeer, withSums), Disk: Disk{Staged: true, Copied: other}}, Next{Say: moves.MoveCopied, Sums: other}},
		"and half of it":                                        {Situation{Order: order(moves.MoveSealing, noPeer, withSums), Disk: half}, Next{Say: moves.MoveCopyingNow, Error: "the other node offers nothing yet"}},
		"it copies":                                             {Situation{Order: order(moves.MoveCopying), Disk: half}, Next{Op: Copy, Say: moves.MoveCopyingNow}},
		"it copies on when it is warm":                          {Situation{Order: order(moves.MoveStopping), Warm: true}, Next{Op: Copy, Say: moves.MoveWarm}},
		"no last round before the sums of the source are known": {Situation{Order: order(moves.MoveSealing), Warm: true}, Next{Op: Copy, Say: moves.MoveWarm}},
		"the last round":                                        {Situation{Order: order(moves.MoveSealing, withSums), Disk: half}, Next{Op: Last, Say: moves.MoveWarm}},
		"copied":                                                {Situation{Order: order(moves.MoveSealing, withSums), Disk: whole}, copied},
		"copied of another seal":                                {Situation{Order: order(moves.MoveSealing, withSums), Disk: Disk{Copied: other}}, Next{Op: Last, Say: moves.MoveWarm}},
		"flipped":                                               {Situation{Order: order(moves.MoveFlipped), Disk: whole}, Next{Op: Arrive, Say: moves.MoveCopied, Sums: sums}},
		"what is not all never arrives":                         {Situation{Order: order(moves.MoveFlipped), Disk: half}, Next{Say: moves.MoveFailed, Error: notCopied}},
		"arrived":                                               {Situation{Order: order(moves.MoveFlipped), Disk: there}, Next{Say: moves.MoveArrived}},
		"arrived, and the store went back":                      {Situation{Order: order(moves.MoveAborting), Disk: there}, Next{Say: moves.MoveArrived}},
		"half arrived, and the store went back":                 {Situation{Order: order(moves.MoveAborting), Disk: Disk{Arrived: true, Staged: true, Copied: sums}}, Next{Op: Arrive, Say: moves.MoveCopied, Sums: sums}},
		"half arrived, and nobody knows":                        {Situation{Told: true, Disk: Disk{Arrived: true, Staged: true, Copied: sums}}, Next{Op: Arrive, Say: moves.MoveCopied, Sums: sums}},
		"half arrived, and it goes back":                        {Situation{Order: order(moves.MoveBack), Disk: Disk{Arrived: true, Staged: true, Copied: sums}}, Next{Op: Arrive, Say: moves.MoveCopied, Sums: sums}},
		"half arrived, and it is over: it went back":            {Situation{Told: true, SameEpoch: true, Disk: Disk{Arrived: true, Staged: true}}, Next{Op: Discard, Say: moves.MoveCopyingNow}},
		"and that is done":                                      {Situation{Told: true, SameEpoch: true, Disk: Disk{Arrived: true}}, Next{Op: Forget}},
		"what goes back is kept, for it may be the last":        {Situation{Order: order(moves.MoveBack), Disk: whole}, Next{Op: Arrive, Say: moves.MoveCopied, Sums: sums}},
		"what is not all is not":                                {Situation{Order: order(moves.MoveBack), Disk: half}, Next{Say: moves.MoveFailed, Error: notCopied}},
		"arrived, and it goes back":                             {Situation{Order: order(moves.MoveBack), Disk: there}, Next{Say: moves.MoveArrived}},
		"aborting":                                              {Situation{Order: order(moves.MoveAborting), Disk: half}, Next{Op: Discard, Say: moves.MoveCopyingNow}},
		"discarded":                                             {Situation{Order: order(moves.MoveAborting)}, Next{Say: moves.MoveDiscarded}},
		"what failed is discarded":                              {Situation{Order: order(moves.MoveAborting), Disk: half, Failed: "why"}, Next{Op: Discard, Say: moves.MoveCopyingNow}},
		"failed":                                                {Situation{Order: order(moves.MoveCopying), Failed: "why"}, Next{Say: moves.MoveFailed, Error: "why"}},
		"nobody knows of it":                                    {Situation{Told: true, SameEpoch: true, Disk: half}, Next{Op: Discard}},
		"nobody knows of it, and nothing is left":               {Situation{Told: true, SameEpoch: true}, Next{Op: Forget}},
		"before any list nothing is discarded":                  {Situation{SameEpoch: true, Disk: half}, Next{Say: moves.MoveCopyingNow}},
		"nobody knows of it since another epoch":                {Situation{Told: true, Disk: whole}, Next{Say: moves.MoveCopied, Sums: sums, Error: unknownCopy}},
		"it is over":                                            {Situation{Told: true, SameEpoch: true, Disk: there}, Next{Op: Forget}},
		"arrived and not known since another epoch":             {Situation{Told: true, Disk: there}, Next{Say: moves.MoveArrived}},
		"the store went back to before it was copied":           {Situation{Order: order(moves.MoveCopying), Disk: whole}, Next{Op: Copy, Say: moves.MoveCopyingNow}},
	} {
		c.v.Role = moves.MoveTarget
		if got := Choose(c.v); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %+v, want %+v", name, got, c.want)
		}
	}
}

func TestInterrupts(t *testing.T) {
	copying, stopping, sealing := order(moves.MoveCopying), order(moves.MoveStopping), order(moves.MoveSealing, withSums)
	for name, c := range map[string]struct {
		op       Op
		old, now *moves.MoveOrder
		want     bool
	}{
		"the member stops":        {Copy, copying, stopping, false},
		"it is sealed":            {Copy, stopping, sealing, true},
		"the same sums":           {Last, sealing, sealing, false},
		"another peer":            {Copy, copying, order(moves.MoveCopying, func(o *moves.MoveOrder) { o.PeerKey = "l" }), true},
		"aborted":                 {Seal, sealing, order(moves.MoveAborting), true},
		"it goes back":            {Last, sealing, order(moves.MoveBack), true},
		"nobody knows of it":      {Copy, copying, nil, true},
		"what arrives":            {Arrive, sealing, nil, false},
		"a sum is made to an end": {Sum, order(moves.MoveSealing), order(moves.MoveSealing), false},
	} {
		if got := Interrupts(c.op, c.old, c.now); got != c.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}
