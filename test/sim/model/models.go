package model

import (
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/test/sim/plants"
)

// Models are what is explored; the first of a test's form are exhausted in a moment.
var Models = []struct {
	Name   string
	Bounds Bounds
	// Short: it is small enough for the unit tests.
	Short bool
}{
	{"one member, leaders come and go", Bounds{Members: 1, Edits: 2, Terms: 2, Numbers: 2}, true},
	{"one member, a cut, a crash, a reboot", Bounds{Members: 1, Edits: 1, Cuts: 1, Crashes: 1, Reboots: 1, Numbers: 2}, true},
	{"one member, a restore", Bounds{Members: 1, Edits: 1, Terms: 1, Backups: 1, Restores: 1, Numbers: 2}, true},
	{"two members in order, leaders come and go", Bounds{Members: 2, Edits: 1, Terms: 1, Numbers: 2, Ordered: true}, true},
	{"one member, a restore and a cut", Bounds{Members: 1, Edits: 1, Terms: 1, Cuts: 1, Backups: 1, Restores: 1, Numbers: 2}, false},
	{"one guarded member", Bounds{Members: 1, Cuts: 1, Numbers: 2, Bound: 2}, false},
	{"one guarded member, two leaders and a clock that lags", Bounds{Members: 1, Cuts: 2, Terms: 1, Numbers: 2, Bound: 2, Lags: 1}, false},
	{"one guarded member, crashes, reboots, slow starts", Bounds{Members: 1, Cuts: 1, Crashes: 1, Reboots: 1, Numbers: 2, Bound: 2, Landings: 1}, false},
	{"one member, all of it", Bounds{Members: 1, Edits: 2, Terms: 1, Cuts: 1, Crashes: 1, Reboots: 1, Numbers: 2}, false},
	{"two members at once, all of it", Bounds{Members: 2, Edits: 1, Terms: 1, Cuts: 1, Crashes: 1, Reboots: 1, Numbers: 2}, false},
	{"two members in order, all of it", Bounds{Members: 2, Edits: 2, Terms: 1, Cuts: 1, Crashes: 1, Reboots: 1, Numbers: 2, Ordered: true}, false},
}

// Plants are the faults that must be found, each in the model that shows it.
var Plants = []struct {
	Plant
	Bounds Bounds
	// Wrong is how what is found begins.
	Wrong string
	// Long: it takes too many states for the unit tests.
	Long bool
}{
	{Plant{Name: "start without proof", See: plants.ForgetSilent}, Bounds{Members: 1, Cuts: 1, Numbers: 2}, "two lives", false},
	{Plant{Name: "stale leader writes", StaleLeaderWrites: true}, Bounds{Members: 1, Edits: 1, Terms: 1, Numbers: 2}, "s0 writes, and does not lead", false},
	{Plant{Name: "token reused after restore", RestoreKeepsEpoch: true}, Bounds{Members: 1, Edits: 2, Terms: 1, Cuts: 1, Backups: 1, Restores: 1, Numbers: 2}, "two lives of 0: 1.1 on n1 and 1.1 on n0", false},
	{Plant{Name: "restore decides at once", See: plants.EveryoneSaid}, Bounds{Members: 1, Edits: 1, Terms: 1, Backups: 1, Restores: 1, Numbers: 2}, "two lives", false},
	{Plant{Name: "hello hides what is pending", HidesPending: true}, Bounds{Members: 1, Edits: 1, Terms: 1, Cuts: 1, Backups: 1, Restores: 1, Numbers: 2}, "two lives", false},
	{Plant{Name: "a report is joined that is not compared", JoinsUncompared: true}, Bounds{Members: 2, Cuts: 1, Numbers: 2, Ordered: true}, "s0 decides by a report on 0 that it does not store", false},
	{Plant{Name: "a report of another life is joined", JoinsOtherLife: true}, Bounds{Members: 1, Edits: 2, Numbers: 3}, "s0 decides by a report on 0 that it does not store", false},
	{Plant{Name: "deadline from the answer's arrival", ConfirmedByArrival: true}, Bounds{Members: 1, Cuts: 1, Numbers: 2, Bound: 1}, "two lives", true},
	{Plant{Name: "pong from memory", PongFromMemory: true}, Bounds{Members: 1, Cuts: 1, Numbers: 2, Bound: 1, Apart: true}, "two lives", true},
	{Plant{Name: "pong before the first list", PongBeforeList: true}, Bounds{Members: 1, Cuts: 1, Numbers: 2, Bound: 1}, "two lives", true},
	{Plant{Name: "hello hides what is pending, guarded", HidesPending: true}, Bounds{Members: 1, Cuts: 1, Numbers: 2, Bound: 1}, "two lives", true},
	// Since no pong comes before the first list only a start that lands late shows it.
	{Plant{Name: "deadline moved before the ledger closes", ConfirmsFirst: true}, Bounds{Members: 1, Cuts: 1, Numbers: 2, Bound: 1, Landings: 1}, "two lives", true},
	{Plant{Name: "no margin", See: plants.NoMargin}, Bounds{Members: 1, Cuts: 1, Numbers: 2, Bound: 1, Lags: 1}, "two lives", true},
	{Plant{Name: "counts from its start", See: plants.LongGone}, Bounds{Members: 1, Cuts: 1, Numbers: 2, Bound: 1}, "two lives", false},
	{Plant{Name: "a killer that kills once", KillsOnce: true}, Bounds{Members: 1, Cuts: 1, Numbers: 2, Bound: 1, Landings: 1}, "two lives", true},
	{Plant{Name: "the silence is not compared", LostUncompared: true}, Bounds{Members: 1, Cuts: 1, Numbers: 2, Bound: 1}, "two lives", true},
	{Plant{Name: "proof of another epoch", See: thisEpoch}, Bounds{Members: 1, Terms: 1, Backups: 1, Restores: 1, Numbers: 1, Bound: 1}, "two lives", true},
}

// thisEpoch takes lives and facts for ones of the present store.
func thisEpoch(w *plan.World) {
	plants.EveryoneSaid(w)
	for i := range w.Slots {
		if m := w.Slots[i].Member; m != nil {
			m.Token.Epoch = w.Epoch
		}
	}
}
