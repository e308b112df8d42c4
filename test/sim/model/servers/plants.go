package servers

import (
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/stores"
	"github.com/stead-project/stead/server/quorum"
)

// The models in which most plants are found.
var (
	lost       = Bounds{Servers: 3, Terms: 2, Writes: 1, Joins: 1, Crashes: 1, Losses: 1, Struck: 3}
	copied     = Bounds{Servers: 3, Terms: 2, Writes: 1, Crashes: 1, Copies: 1, Putbacks: 1, Looks: 2, Struck: 3}
	oldRemoved = Bounds{Servers: 3, Terms: 2, Removals: 1, Crashes: 1, Copies: 1, Putbacks: 1, Struck: 3}
	loose      = Bounds{Servers: 3, Terms: 1, Writes: 1, Crashes: 1, Looks: 2, Loose: 1}
	alone      = Bounds{Servers: 3, Terms: 2, Down: true, Forces: 1, Struck: 3}
)

// startsAgain has a server without its data start as the member that it was.
func startsAgain(_ *records.Server, members []stores.StoreMember, self records.Server) quorum.JoinStep {
	for _, m := range members {
		if m.Peer == self.Peer {
			return quorum.Start
		}
	}
	return quorum.Add
}

// Plants are the guards that are left out, each in the model that shows it; of two that stand for each other both.
var Plants = []struct {
	Plant
	Bounds Bounds
	// Wrong is how what is found begins.
	Wrong string
	// Long: it takes too many states for the unit tests.
	Long bool
}{
	{Plant{Name: "a vote is given to a log that lacks writes", ComparesNoLogs: true}, Bounds{Servers: 3, Terms: 2, Writes: 1}, "h", false},
	{Plant{Name: "a server without its data starts as itself", Join: startsAgain}, lost, "", false},
	{Plant{Name: "any server may be removed", MayRemove: func([]stores.StoreMember, map[string]bool, string) string { return "" }}, Bounds{Servers: 3, Terms: 1, Crashes: 1, Removals: 1}, "member", false},
	{Plant{Name: "old data is not noticed", SetBack: func(stores.Mark, stores.Mark, []stores.Mark) string { return "" }}, copied, "h2 starts with data", false},
	{Plant{Name: "the leader is not asked", AsksNoLeader: true}, copied, "h2 starts with data", false},
	{Plant{Name: "of members that are away nothing is kept", ForgetsSilent: true}, Bounds{Servers: 3, Terms: 2, Writes: 1, Crashes: 1, Copies: 1, Putbacks: 1, Looks: 3, Struck: 3}, "h2 starts with data", true},
	{Plant{Name: "nobody says that a member was removed", SaysNotRemoved: true}, oldRemoved, "", false},
	{Plant{Name: "who answers is the member", AliveByAddress: true}, Bounds{Servers: 3, Terms: 2, Down: true, Forces: 1, Removals: 1, Struck: 3}, "member", false},
	{Plant{Name: "what is seen is kept at once", KeepsAtOnce: true}, loose, "h", false},
	{Plant{Name: "a member has no name", NamesByRecord: true}, Bounds{Servers: 1, Terms: 1, Joins: 1, Removals: 1, Drops: 2, Struck: 2}, "member", false},
	{Plant{Name: "a name is taken", TakesNames: true, Join: func(_ *records.Server, _ []stores.StoreMember, _ records.Server) quorum.JoinStep { return quorum.Add }}, Bounds{Servers: 3, Terms: 1, Joins: 1, Spare: true}, "the name s2", false},
	{Plant{Name: "what servers and nodes knew is not compared", SeesNoGap: true}, alone, "the old store", false},
	{Plant{Name: "a store that is made of another one is not held", MarksNothing: true, SeesNoGap: true}, alone, "the old store", false},
}
