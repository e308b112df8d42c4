package plants

// serverPlants are of servers with a store of their own.
var serverPlants = []Plant{
	{Name: "removes-any-server", Judges: "quorum", RemovesAny: true, Often: servers},
	{Name: "recovers-unmarked", Judges: "continuity", RecoversUnmarked: true, NoticesNothing: true, Often: append([]string{"recover"}, servers...)},
	{Name: "skips-what-it-missed", Judges: "follower", SkipsWhatItMissed: true, Often: []string{"servers", "break-watch", "feed"}},
	{Name: "reports-not-compared", Rare: true, Judges: "reports, progress", Unguarded: []string{"reports/"}, Often: []string{"servers", "late", "arrive", "sick"}},
}

var servers = []string{"servers", "lose-server", "server-joins", "remove-server", "crash-server", "elect"}
