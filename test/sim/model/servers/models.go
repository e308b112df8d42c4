package servers

// Models are what is explored.
var Models = []struct {
	Name   string
	Bounds Bounds
	// Short: it is small enough for the unit tests.
	Short bool
}{
	{"three servers, elections and writes", Bounds{Servers: 3, Terms: 3, Vain: 1, Writes: 2}, true},
	{"a server joins", Bounds{Servers: 1, Terms: 2, Writes: 1, Joins: 1, Crashes: 1, Drops: 1}, true},
	{"a server is added, and nobody knows", Bounds{Servers: 1, Terms: 1, Joins: 3, Drops: 1}, true},
	{"a server that joins loses its data", Bounds{Servers: 1, Terms: 1, Joins: 3, Losses: 1, Crashes: 1, Drops: 1, Struck: 2}, true},
	{"a server is removed", Bounds{Servers: 3, Terms: 2, Removals: 1, Crashes: 1, Drops: 1, Struck: 3}, true},
	{"a server loses its disk and is replaced", Bounds{Servers: 3, Terms: 2, Removals: 1, Joins: 1, Crashes: 1, Losses: 1, Struck: 3}, true},
	{"an old copy is put back, and the lead changes", Bounds{Servers: 3, Terms: 2, Writes: 1, Crashes: 1, Copies: 1, Putbacks: 1, Struck: 3}, true},
	{"an old copy is put back, of what all have seen", Bounds{Servers: 3, Terms: 1, Writes: 1, Crashes: 1, Copies: 1, Putbacks: 1, Looks: 3, Struck: 3, Alone: true}, true},
	{"an old copy is put back", copied, false},
	{"an old copy of one that was removed", oldRemoved, true},
	{"what is used before it is on the disk", loose, true},
	{"one goes on alone", alone, true},
	{"one goes on alone, and the others come back and remove one", Bounds{Servers: 3, Terms: 2, Down: true, Forces: 1, Removals: 1, Struck: 3}, true},
	{"a backup on a new server", Bounds{Servers: 1, Terms: 2, Writes: 1, Crashes: 1, Backups: 1, Forces: 1}, true},
	{"an ended store", Bounds{Servers: 1, Terms: 2, Writes: 1, Crashes: 1, Ends: 1, Forces: 1}, true},
	{"two servers join", Bounds{Servers: 1, Terms: 2, Writes: 1, Joins: 2, Crashes: 1, Drops: 1}, false},
	{"three servers, a crash", Bounds{Servers: 3, Terms: 3, Vain: 1, Writes: 2, Crashes: 1}, false},
	{"any server is removed", Bounds{Servers: 3, Terms: 2, Writes: 1, Removals: 1, Crashes: 1, Drops: 1}, false},
	{"any server loses its disk and is replaced", Bounds{Servers: 3, Terms: 2, Writes: 1, Removals: 1, Joins: 1, Crashes: 1, Losses: 1}, false},
	{"a server is replaced by one of its name on another host", Bounds{Servers: 3, Terms: 2, Removals: 1, Joins: 2, Crashes: 1, Losses: 1, Struck: 3, Spare: true}, false},
	{"an old copy is put back, alone, in three terms", Bounds{Servers: 3, Terms: 3, Writes: 1, Crashes: 1, Copies: 1, Putbacks: 1, Looks: 2, Struck: 3, Alone: true}, false},
	{"an old copy of one that was removed, after a write", Bounds{Servers: 3, Terms: 2, Writes: 1, Removals: 1, Crashes: 1, Copies: 1, Putbacks: 1, Struck: 3}, false},
}
