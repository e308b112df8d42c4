package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/test/sim/plants"
)

// Choice is one thing that happens: what, and the number from which every detail
// of it is drawn. One that cannot happen now does nothing.
type Choice struct {
	Kind string
	R    uint64
}

// String is "kind number", as in a file of a run.
func (c Choice) String() string { return c.Kind + " " + strconv.FormatUint(c.R, 10) }

// ParseChoice is the inverse of String.
func ParseChoice(line string) (Choice, error) {
	kind, number, _ := strings.Cut(line, " ")
	r, err := strconv.ParseUint(number, 10, 64)
	if err != nil || actions[kind] == nil {
		return Choice{}, fmt.Errorf("%q is no choice; want kind and number", line)
	}
	return Choice{kind, r}, nil
}

// action does one kind of choice; false: it could not happen now.
type action func(w *Cluster) bool

func onServer(do func(*server) bool) action {
	return func(w *Cluster) bool { return do(w.someServer()) }
}

func onNode(do func(*node) bool) action { return func(w *Cluster) bool { return do(w.someNode()) } }

// onStream does something on one of the sessions for which ok holds.
func onStream(ok, do func(*stream) bool) action {
	return func(w *Cluster) bool {
		x := w.some(ok)
		return x != nil && do(x)
	}
}

func asks(do func(user) bool) action { return func(w *Cluster) bool { return do(user{w}) } }

// edits changes a set that is not being deleted.
func edits(edit func(user, *records.Set)) action {
	return func(w *Cluster) bool { return user{w}.change(func(s *records.Set) { edit(user{w}, s) }) }
}

func operates(do func(operator) bool) action {
	return func(w *Cluster) bool { return do(operator{w}) }
}

// actions are all kinds.
var actions = map[string]action{
	"choose": (*Cluster).choose, "compose": (*Cluster).compose, "share": (*Cluster).share, "ahead": (*Cluster).ahead, "moves": (*Cluster).mayMove, "wait": (*Cluster).wait, "settle": (*Cluster).settle, "land": (*Cluster).land, "reclaim": (*Cluster).reclaim,
	"feed": onServer((*server).feed), "turn": (*Cluster).turn, "turn-claim": (*Cluster).turnClaim, "store": onServer((*server).storeReports), "store-joined": onServer((*server).joinReports), "campaign": onServer((*server).campaign),
	"notice-loss": onServer((*server).noticeLoss), "link": (*Cluster).link, "connect": (*Cluster).connect,
	"tell": onStream((*stream).answers, (*stream).tell), "receive": onStream((*stream).hasOrders, (*stream).receiveSome),
	"send": onStream((*stream).send, anySession), "take": onStream((*stream).hasReports, (*stream).takeSome), "work": onNode((*node).work),
	// What goes wrong.
	"crash-server": onServer((*server).crash), "crash-between": onServer((*server).crashBetween), "unknown": onServer((*server).unknownOutcome),
	"start-server": onServer((*server).restart), "hang-server": onServer((*server).hang), "lose-memory": onServer((*server).loseMemory),
	"cut-server": onServer(func(s *server) bool { return s.setCut(true) }), "join-server": onServer(func(s *server) bool { return s.setCut(false) }),
	"away": (*Cluster).away, "backup": (*Cluster).backup, "restore": (*Cluster).restore, "go-back": (*Cluster).goBack,
	"halt-agent": onNode((*node).haltAgent), "resume-agent": onNode((*node).resumeAgent), "crash-agent": onNode((*node).crashAgent),
	"start-agent": onNode((*node).start), "reboot": onNode((*node).reboot), "power-off": onNode((*node).goDown),
	"cut": onNode((*node).cutOff), "join": onNode((*node).join), "sick": onNode((*node).sicken), "lapse": (*Cluster).lapse, "slow-op": onNode((*node).slowOperation),
	"kill-watchdog": onNode((*node).killWatchdog), "kill-logger": onNode((*node).killLogger),
	"break": onStream(anySession, (*stream).breaks), "expire-session": onStream(anySession, (*stream).expire), "lie": onStream(anySession, (*stream).lie),
	"ask": onNode((*node).ask), "unmount": onNode((*node).unmount), "mount": onNode((*node).mount), "kill-disk": onNode((*node).killDisk), "replace-disk": onNode((*node).replaceDisk),
	"says": onNode((*node).says), "order": edits(user.order), "jobs": asks(user.jobs), "differ": (*Cluster).differ, "change": (*Cluster).change, "job-word": asks(user.decideJob), "job-on": (*Cluster).jobOn,
	"move-work": (*Cluster).moveWork, "move-on": (*Cluster).moveOn, "move-through": (*Cluster).moveThrough,
	"servers": (*Cluster).withServers, "replicate": (*Cluster).replicate, "arrive": (*Cluster).arrives, "elect": (*Cluster).newLeader, "late": onServer((*server).delay), "break-watch": onServer((*server).breakWatch),
	"lose-server": (*Cluster).loseServer, "recover": (*Cluster).recover, "server-joins": operates(operator.joinServer), "add-server": operates(operator.addServer),
	"remove-server": operates(operator.removeServer), "replace-server": operates(operator.replaceServer), "come-back": operates(operator.comeBack),
	// What people ask.
	"move": asks(user.move), "abort-move": asks(user.abortMove), "drain-move": onNode((*node).drainMove), "back-move": asks(user.backMove), "lose-target": operates(operator.loseTarget), "lose-source": operates(operator.loseSource),
	"user": asks(user.anything), "rename": asks(user.rename), "orphan": asks(user.orphan), "adopt": asks(user.adopt),
	"lost": asks(user.sayLost), "give-up": asks(user.giveUp), "bring-back": asks(user.bringBack),
	"retain": edits(user.retain), "claim": edits(user.claim), "scale": edits(user.scale), "range": edits(user.moveRange), "deadline": edits(user.deadline),
	"leave": edits(user.leaveHooks), "parts": edits(user.parts), "mounts": edits(user.remount), "claims": asks(user.claims), "recreate": edits(user.recreate), "pause": edits(user.pause), "floor": edits(user.setFloor), "node-loss": edits(user.loseNodes),
	// What operators do.
	"cordon": onNode((*node).cordon), "drain": onNode((*node).drain), "shut-down": onNode((*node).shutDown), "declare": operates(operator.declare), "excuse": operates(operator.excuse), "fence": operates(operator.fence),
	"remove-node": operates(operator.removeNode), "new-node": (*Cluster).addNode, "take-name": onNode((*node).takeName),
}

// weight of a kind: how often it is drawn in a calm and in a stormy run.
type weight struct {
	kind         string
	calm, stormy int
}

var weights = []weight{
	{"feed", 200, 200}, {"turn", 200, 200}, {"tell", 120, 120}, {"receive", 120, 120}, {"send", 100, 100}, {"take", 100, 100},
	{"store", 100, 100}, {"work", 260, 260}, {"campaign", 20, 30}, {"notice-loss", 12, 12}, {"connect", 40, 80}, {"wait", 10, 14},
	{"choose", 0, 0}, {"compose", 0, 0}, {"share", 0, 0}, {"ahead", 0, 0}, {"leave", 5, 5}, {"parts", 2, 2}, {"mounts", 3, 3}, {"claims", 6, 8}, {"turn-claim", 30, 30}, {"unmount", 2, 3}, {"mount", 8, 12}, {"kill-disk", 1, 1}, {"replace-disk", 8, 12}, {"lost", 10, 12}, {"rename", 1, 1}, {"lie", 1, 3},
	{"user", 12, 16}, {"land", 6, 10}, {"start-server", 20, 30}, {"start-agent", 30, 60}, {"join", 20, 40},
	{"crash-server", 1, 2}, {"crash-between", 1, 6}, {"unknown", 1, 6}, {"hang-server", 1, 2},
	{"cut-server", 1, 3}, {"join-server", 20, 40}, {"halt-agent", 1, 3}, {"resume-agent", 15, 20},
	{"kill-watchdog", 2, 4}, {"kill-logger", 2, 3}, {"expire-session", 1, 3}, {"away", 0, 1}, {"node-loss", 2, 2},
	{"crash-agent", 2, 7}, {"reboot", 1, 2}, {"power-off", 0, 1}, {"cut", 1, 4}, {"break", 2, 6}, {"sick", 3, 6}, {"lapse", 5, 5},
	{"reclaim", 60, 60}, {"retain", 4, 5}, {"claim", 1, 2}, {"range", 2, 3}, {"deadline", 5, 6}, {"recreate", 1, 1}, {"pause", 2, 2}, {"floor", 1, 1}, {"orphan", 1, 1}, {"adopt", 8, 8}, {"give-up", 7, 9}, {"bring-back", 4, 5}, {"scale", 4, 6}, {"cordon", 1, 2}, {"drain", 1, 2}, {"shut-down", 1, 2}, {"slow-op", 3, 6}, {"backup", 1, 1}, {"restore", 0, 1},
	{"go-back", 1, 3}, {"declare", 4, 6}, {"excuse", 20, 30}, {"new-node", 0, 1}, {"link", 6, 10}, {"lose-memory", 0, 1},
	{"fence", 10, 14}, {"remove-node", 3, 4}, {"take-name", 2, 3}, {"ask", 3, 4},
}

// moveWeights are drawn as well in runs with moves.
var moveWeights = []weight{{"moves", 0, 0}, {"move", 40, 40}, {"abort-move", 2, 4}, {"move-work", 80, 80}, {"move-on", 70, 70}, {"move-through", 12, 12}, {"drain-move", 1, 2}, {"lose-target", 2, 4}, {"back-move", 20, 20}, {"lose-source", 2, 4}}

// serverWeights are drawn as well in runs in which the servers have a store of their own.
var serverWeights = []weight{
	{"servers", 0, 0}, {"replicate", 30, 30}, {"arrive", 12, 12}, {"elect", 2, 4}, {"late", 2, 6}, {"break-watch", 3, 6}, {"lose-server", 3, 6}, {"recover", 10, 10},
	{"server-joins", 30, 30}, {"add-server", 3, 3}, {"remove-server", 2, 3}, {"replace-server", 12, 12}, {"come-back", 6, 6}, {"crash-server", 1, 3}, {"cut-server", 1, 3},
}

// direct are what people ask of the store, through whichever server answers.
var direct = map[string]bool{
	"move": true, "abort-move": true, "drain-move": true, "back-move": true, "lose-target": true, "lose-source": true, "user": true, "rename": true, "orphan": true, "adopt": true, "lost": true,
	"give-up": true, "bring-back": true, "retain": true, "claim": true, "scale": true, "range": true, "deadline": true, "leave": true, "parts": true, "mounts": true,
	"claims": true, "recreate": true, "pause": true, "floor": true, "node-loss": true, "cordon": true, "drain": true, "declare": true, "excuse": true, "order": true, "jobs": true, "differ": true, "change": true, "job-word": true,
	"backup": true, "moves": true, "share": true, "go-back": true, "expire-session": true, "lie": true,
}

// sayWeights are drawn as well in runs in which members say something of themselves.
var sayWeights = []weight{{"says", 12, 12}, {"order", 8, 8}}

// differWeights are drawn as well in runs in which members of a set differ.
var differWeights = []weight{{"differ", 16, 16}, {"pause", 2, 2}, {"user", 4, 4}}

// changeWeights are drawn as well in runs in which members change in place.
var changeWeights = []weight{{"change", 24, 24}}

// jobWeights are drawn as well in runs in which sets have jobs; jobFaults instead of all others for a while after faults were mended: jobs
// run while all members are ready.
var (
	jobWeights = []weight{{"jobs", 2, 2}, {"job-word", 10, 10}, {"job-on", 20, 20}}
	jobFaults  = []weight{
		{"jobs", 4, 4}, {"job-word", 8, 8}, {"job-on", 50, 50}, {"scale", 5, 5}, {"user", 1, 1}, {"orphan", 1, 1}, {"adopt", 2, 2}, {"wait", 2, 2},
		{"turn", 20, 20}, {"feed", 10, 10}, {"tell", 10, 10}, {"receive", 10, 10}, {"work", 30, 30}, {"send", 10, 10}, {"take", 10, 10}, {"store", 10, 10}, {"campaign", 5, 5}, {"connect", 8, 8},
		{"crash-agent", 6, 6}, {"start-agent", 8, 8}, {"reboot", 1, 2}, {"shut-down", 1, 2}, {"range", 1, 1}, {"cut", 1, 2}, {"join", 4, 4}, {"halt-agent", 1, 2}, {"resume-agent", 3, 3}, {"break", 1, 2}, {"sick", 1, 2}, {"slow-op", 1, 2},
		{"crash-between", 1, 2}, {"unknown", 1, 2}, {"start-server", 6, 6}, {"backup", 2, 2}, {"go-back", 1, 2}, {"restore", 0, 1}, {"declare", 3, 3}, {"excuse", 3, 3}, {"link", 2, 2},
	}
)

// dealer draws choices.
type dealer struct {
	r       *rand.Rand
	table   []weight
	faults  []weight // drawn instead for a while after faults were mended; nil: none are
	calm    bool
	moves   bool
	servers bool // have a store of their own
	jobs    bool // sets have some
	differs bool // members of a set do
	changes bool // in place
}

func newDealer(seed uint64, plant plants.Plant) *dealer {
	often := plant.Often
	d := &dealer{r: rand.New(rand.NewPCG(seed, 2)), table: slices.Clone(weights), moves: seed%2 == 0 || slices.Contains(often, "move")}
	if d.moves {
		d.table = append(d.table, moveWeights...)
	}
	d.servers = seed%3 == 1 || slices.Contains(often, "servers")
	if d.servers {
		d.table = append(d.table, serverWeights...)
	}
	if seed%3 == 0 || slices.Contains(often, "says") {
		d.table = append(d.table, sayWeights...)
	}
	if seed%3 == 2 || slices.Contains(often, "jobs") {
		d.jobs, d.table, d.faults = true, append(d.table, jobWeights...), slices.Clone(jobFaults)
	}
	if plant.Name == "" && seed%4 == 3 || slices.Contains(often, "differ") {
		d.differs, d.table = true, append(d.table, differWeights...)
	}
	if plant.Name == "" && seed%4 == 1 || slices.Contains(often, "change") { // a plant that is not about these is found sooner without

		d.changes, d.table = true, append(d.table, changeWeights...)
	}
	for _, table := range [][]weight{d.table, d.faults} {
		for i, w := range table {
			if slices.Contains(often, w.kind) {
				table[i].calm, table[i].stormy = 4*w.calm+12, 4*w.stormy+12
			}
		}
	}
	d.calm = d.r.IntN(3) == 0
	return d
}

// settles is after how many choices faults are mended.
func (d *dealer) settles() int {
	if d.jobs {
		return 200
	}
	return 400
}

func (d *dealer) of(w weight) int {
	if d.calm {
		return w.calm
	}
	return w.stormy
}

// next is the choice of a number.
func (d *dealer) next(i int) Choice {
	table := d.table
	if d.jobs && i%d.settles() < d.settles()/2 {
		table = d.faults
	}
	total := 0
	for _, w := range table {
		total += d.of(w)
	}
	n := d.r.IntN(total)
	for _, w := range table {
		n -= d.of(w)
		if n >= 0 {
			continue
		}
		c := Choice{w.kind, d.r.Uint64N(1_000_000)}
		if c.Kind == "store" && c.R%3 > 0 {
			c.Kind = "store-joined"
		}
		return c
	}
	panic("the weights do not add up")
}
