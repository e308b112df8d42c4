// Package plants has the faults that are put on purpose into the simulation: into its models,
// and into what the planner is shown and made to say. A judge must find each.
package plants

import (
	"slices"
	"strings"

	"github.com/stead-project/stead/agent/step"
	"github.com/stead-project/stead/agent/worker"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/store"
)

// Plant is a fault put in on purpose, to show that a judge finds it. The zero Plant
// is none.
type Plant struct {
	// Name is how it is called in tests and files of runs.
	Name string
	// Judges names those of which one must find it.
	Judges string
	// Rare: it takes hundreds of seeds; the unit tests replay a kept run instead.
	Rare bool
	// Blind names judges that do not look, so that others have to.
	Blind string
	// Often are kinds of choices that are drawn more often than otherwise.
	Often []string

	// Of hosts and agents.
	ForgetfulAgent     bool // a restarted agent has an empty ledger (S1)
	AbsenceIsAnOrder   bool // what a whole list does not name is stopped (S2)
	DeafToOldTokens    bool // an order for an older token than the last is not answered
	AvailableOnce      bool // availability is not told anew when its time was changed
	ToldTooEarly       bool // an end is told when the process was only asked to end
	ConfirmedByArrival bool // a deadline is moved from when the answer came (S5)
	KillsOnce          bool // a killer kills what it finds, and nothing that comes later (S3)
	StartsUnguarded    bool // a guarded life begins before any killer knows of it (S14)
	ForgetsDeadline    bool // a restarted agent takes the present for confirmed
	KillsEarly         bool // a killer does not wait for the whole bound
	PongFromMemory     bool // a server cut off from the store answers pings from what it knows (S5)
	LateStartLands     bool // a start lands though its container was removed
	ErasesEarly        bool // the time in the trash is not waited for
	TakesAnyVolume     bool // with a volume goes what stands in its place later (S11)
	SaysGone           bool // a volume that is to go is said to be gone, and stays
	ForgetsMade        bool // a volume that was made and is not there is made again (S11)
	TakesAnyDisk       bool // what shows in the directory of a class is not compared with its disk (S11)
	ForgetsTrash       bool // what lies in the trash of a disk that is away is said to be erased
	BelievesLost       bool // one that is said to be lost is not looked for once more

	ArrivesTooEarly bool // a target says that the volumes are in their place when they are in staging (S12)
	SealsNothing    bool // a source says that it has sealed what it has not
	SaysBackSealed  bool // a source says that its volumes are back when it is noted, and nothing is unsealed
	SaysSumsUnread  bool // a target says the sums of its source, whatever it has
	BreaksSeals     bool // a source breaks its seal unasked, now and then
	ForgetsSeals    bool // a restarted agent takes sealed volumes for such as are not
	KeepsOldReports bool // what a node said of moves in its session before counts in the next one
	SealsUnderLives bool // a source does not look whether a life is open, or has processes

	FencesWhatIsOn bool // an operator's word that a machine is off is not true (S10)

	HooksReturnAtOnce bool // a postStart hook is said to have returned while it runs
	SeesNoFailure     bool // an init container that failed is said to have ended with 0
	SeesNoSignal      bool // a job that a signal ended is said to have ended by itself
	BeginsOldJobs     bool // a job that was ordered before a restore is begun after it
	SaysChanged       bool // a change in place is said to be done when it was taken
	TakesAnyTemplate  bool // a life's containers become what is sent with it, without an order
	// Look changes what a worker saw of its identity; Keep what it keeps of a life.
	Look func(step.Wanted, *step.Seen)
	Keep func(*worker.State)

	// Of the store and its restore.
	BelievesAnyNode   bool // a node's word about another's volumes is stored (S21)
	NoticesNothing    bool // neither servers nor nodes compare the store with what they know (S8)
	OpensAfterRestore bool // a life that was assigned before a restore begins after it (S8)
	CountsTheBackup   bool // a restore waits for the nodes of its backup only (S8)
	// Unguarded: guards of keys that begin so are left out of every transaction (S7).
	Unguarded []string

	// Of the servers' own store.
	RemovesAny        bool // any server may be removed
	RecoversUnmarked  bool // a store that goes on with one server is not held
	SkipsWhatItMissed bool // after a watch has ended, it is followed from the present on (S18)

	OneVolumeID bool // all new volumes of an identity's claim get the same id (S11)
	// Of the planner: what it is shown, and what it is made to say.
	See func(w *plan.World)
	Say func(w plan.World, p *plan.Plan)
}

// Looks is what a worker saw, as its next operation is chosen.
func (p Plant) Looks(w step.Wanted, s step.Seen) step.Seen {
	if p.Look != nil {
		s.Containers = slices.Clone(s.Containers)
		p.Look(w, &s)
	}
	return s
}

// State changes what a worker keeps.
func (p Plant) State(s *worker.State) {
	if p.Keep != nil {
		p.Keep(s)
	}
}

// World is what the planner is shown of the world.
func (p Plant) World(w plan.World) plan.World {
	if p.See != nil {
		w.Slots, w.Nodes = slices.Clone(w.Slots), slices.Clone(w.Nodes)
		p.See(&w)
	}
	return w
}

// Plan is what it is made to say.
func (p Plant) Plan(w plan.World, x plan.Plan) plan.Plan {
	if p.Say != nil {
		p.Say(w, &x)
	}
	return x
}

// Txn is what a server writes, with the guards that are left to it.
func (p Plant) Txn(t store.Txn) store.Txn {
	if len(p.Unguarded) > 0 {
		t.If = slices.DeleteFunc(slices.Clone(t.If), func(g store.Compare) bool {
			return slices.ContainsFunc(p.Unguarded, func(key string) bool { return strings.HasPrefix(g.Key, key) })
		})
	}
	return t
}

// Named finds a plant; "" is none.
func Named(name string) (Plant, bool) {
	if name == "" {
		return Plant{}, true
	}
	for _, p := range All {
		if p.Name == name {
			return p, true
		}
	}
	return Plant{}, false
}
