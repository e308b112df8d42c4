package move

// What most plants are found in; each is exhausted.
var (
	aborting           = Bounds{Moves: 1, Aborts: 1, Writes: 1, Overlooks: 1, Numbers: 2, Late: true}
	restored           = Bounds{Moves: 1, Writes: 1, Backups: 1, Restores: 1, Numbers: 2}
	restoredAndAborted = Bounds{Moves: 1, Aborts: 1, AbortsLater: true, Writes: 1, Backups: 1, Restores: 1, Numbers: 2}
)

const twoVolumes = "volumes 0 and 1 are both in their place and not sealed"

// Models are what is explored.
var Models = []struct {
	Name   string
	Bounds Bounds
	// Short: it is small enough for the unit tests.
	Short bool
}{
	{"a move, an abort, late reports", aborting, true},
	{"a move whose life fails", Bounds{Moves: 1, Writes: 1, Fails: 1, Numbers: 2}, true},
	{"a move, an abort, the set scaled to none", Bounds{Moves: 1, Aborts: 1, Edits: 2, Numbers: 2}, true},
	{"a move there and back", Bounds{Moves: 2, Writes: 2, Numbers: 3}, true},
	{"a move, the source told late", Bounds{Moves: 1, Behind: 8, Apart: 1, Numbers: 2}, true},
	{"a move, the target told late", Bounds{Moves: 1, Behind: 8, Apart: 2, Numbers: 2}, true},
	{"a move and a restore", restored, true},
	{"a move, an abort and a crash", Bounds{Moves: 1, Aborts: 1, Writes: 1, Crashes: 1, Numbers: 2}, false},
	{"a move, an abort and a cut", Bounds{Moves: 1, Aborts: 1, Cuts: 1, Numbers: 2, Late: true}, false},
	{"a move, an abort and a leader with an old view", Bounds{Moves: 1, Aborts: 1, Behind: 2, Numbers: 2}, false},
	{"a move, a life that fails and an old view", Bounds{Moves: 1, Writes: 1, Fails: 1, Behind: 1, Numbers: 2}, false},
	{"a move, a restore and an abort", restoredAndAborted, false},
}
