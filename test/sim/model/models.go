package model

import (
	"github.com/stead-project/stead/server/plan"
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
}{
	{Plant{Name: "start without proof", See: forgetSilent}, Bounds{Members: 1, Cuts: 1, Numbers: 2}, "two lives"},
	{Plant{Name: "stale leader writes", StaleLeaderWrites: true}, Bounds{Members: 1, Edits: 1, Terms: 1, Numbers: 2}, "s0 writes, and does not lead"},
	{Plant{Name: "token reused after restore", RestoreKeepsEpoch: true}, Bounds{Members: 1, Edits: 2, Terms: 1, Cuts: 1, Backups: 1, Restores: 1, Numbers: 2}, "two lives of 0: 1.1 on n1 and 1.1 on n0"},
	{Plant{Name: "restore decides at once", See: everyoneSaid}, Bounds{Members: 1, Edits: 1, Terms: 1, Backups: 1, Restores: 1, Numbers: 2}, "two lives"},
	{Plant{Name: "hello hides what is pending", HidesPending: true}, Bounds{Members: 1, Edits: 1, Terms: 1, Cuts: 1, Backups: 1, Restores: 1, Numbers: 2}, "two lives"},
}

// forgetSilent takes a life on a node without session for one that is over.
func forgetSilent(w *plan.World) {
	for i := range w.Slots {
		for _, n := range w.Nodes {
			if m := w.Slots[i].Member; m != nil && m.Node == n.Node.Name && n.Session == nil {
				w.Slots[i].Member, w.Slots[i].Report = nil, nil
			}
		}
	}
}

// everyoneSaid takes every node for one that has said since the restore what it runs.
func everyoneSaid(w *plan.World) {
	for i := range w.Nodes {
		if f := w.Nodes[i].Facts; f != nil {
			facts := *f
			facts.Epoch, w.Nodes[i].Facts = w.Epoch, &facts
		}
	}
}
