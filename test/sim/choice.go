package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
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

// actions are all kinds.
var actions = map[string]action{
	"feed": (*Cluster).feed, "turn": (*Cluster).turn, "tell": (*Cluster).tell, "receive": (*Cluster).receive,
	"send": (*Cluster).send, "take": (*Cluster).take, "store": (*Cluster).store, "work": (*Cluster).work,
	"campaign": (*Cluster).campaign, "notice-loss": (*Cluster).noticeLoss, "connect": (*Cluster).connect, "wait": (*Cluster).wait,
	"user": (*Cluster).user, "land": (*Cluster).land, "settle": (*Cluster).settle,
	"choose": (*Cluster).choose, "unmount": (*Cluster).unmount, "mount": (*Cluster).mount, "kill-disk": (*Cluster).killDisk, "replace-disk": (*Cluster).replaceDisk,
	"lost": (*Cluster).sayLost, "rename": (*Cluster).rename, "lie": (*Cluster).lie,
	"crash-server": (*Cluster).crashServer, "crash-between": (*Cluster).crashBetween, "unknown": (*Cluster).unknownOutcome,
	"start-server": (*Cluster).startServer, "hang-server": (*Cluster).hangServer,
	"cut-server": (*Cluster).cutServer, "join-server": (*Cluster).joinServer, "halt-agent": (*Cluster).haltAgent,
	"kill-watchdog": (*Cluster).killWatchdog, "kill-logger": (*Cluster).killLogger, "expire-session": (*Cluster).expireSession, "away": (*Cluster).away, "node-loss": (*Cluster).loseNodes, "resume-agent": (*Cluster).resumeAgent,
	"crash-agent": (*Cluster).crashAgent, "start-agent": (*Cluster).startAgent, "reboot": (*Cluster).reboot,
	"power-off": (*Cluster).powerOff, "cut": (*Cluster).cutNode, "join": (*Cluster).joinNode, "break": (*Cluster).breakSession, "sick": (*Cluster).sicken, "lapse": (*Cluster).lapse,
	"reclaim": (*Cluster).reclaim, "retain": (*Cluster).retain, "claim": (*Cluster).claim, "range": (*Cluster).moveRange, "deadline": (*Cluster).deadline, "recreate": (*Cluster).recreate, "pause": (*Cluster).pause, "floor": (*Cluster).setFloor,
	"orphan": (*Cluster).orphan, "adopt": (*Cluster).adopt, "give-up": (*Cluster).giveUp, "bring-back": (*Cluster).bringBack, "scale": (*Cluster).scale,
	"cordon": (*Cluster).cordon, "slow-op": (*Cluster).slowOperation, "backup": (*Cluster).backup, "restore": (*Cluster).restore,
	"go-back": (*Cluster).goBack, "declare": (*Cluster).declare, "excuse": (*Cluster).excuse, "new-node": (*Cluster).addNode, "link": (*Cluster).link, "lose-memory": (*Cluster).loseMemory,
	"fence": (*Cluster).fence, "remove-node": (*Cluster).removeNode, "take-name": (*Cluster).takeName,
}

// weight of a kind: how often it is drawn in a calm and in a stormy run.
type weight struct {
	kind         string
	calm, stormy int
}

var weights = []weight{
	{"feed", 200, 200}, {"turn", 200, 200}, {"tell", 120, 120}, {"receive", 120, 120}, {"send", 100, 100}, {"take", 100, 100},
	{"store", 100, 100}, {"work", 260, 260}, {"campaign", 20, 30}, {"notice-loss", 12, 12}, {"connect", 40, 80}, {"wait", 10, 14},
	{"choose", 0, 0}, {"unmount", 2, 3}, {"mount", 8, 12}, {"kill-disk", 1, 1}, {"replace-disk", 8, 12}, {"lost", 10, 12}, {"rename", 1, 1}, {"lie", 1, 3},
	{"user", 12, 16}, {"land", 6, 10}, {"start-server", 20, 30}, {"start-agent", 30, 60}, {"join", 20, 40},
	{"crash-server", 1, 2}, {"crash-between", 1, 6}, {"unknown", 1, 6}, {"hang-server", 1, 2},
	{"cut-server", 1, 3}, {"join-server", 20, 40}, {"halt-agent", 1, 3}, {"resume-agent", 15, 20},
	{"kill-watchdog", 2, 4}, {"kill-logger", 2, 3}, {"expire-session", 1, 3}, {"away", 0, 1}, {"node-loss", 2, 2},
	{"crash-agent", 2, 7}, {"reboot", 1, 2}, {"power-off", 0, 1}, {"cut", 1, 4}, {"break", 2, 6}, {"sick", 3, 6}, {"lapse", 2, 2},
	{"reclaim", 60, 60}, {"retain", 4, 5}, {"claim", 1, 2}, {"range", 2, 3}, {"deadline", 3, 4}, {"recreate", 1, 1}, {"pause", 2, 2}, {"floor", 1, 1}, {"orphan", 1, 1}, {"adopt", 8, 8}, {"give-up", 7, 9}, {"bring-back", 4, 5}, {"scale", 4, 6}, {"cordon", 1, 2}, {"slow-op", 3, 6}, {"backup", 1, 1}, {"restore", 0, 1},
	{"go-back", 1, 3}, {"declare", 4, 6}, {"excuse", 20, 30}, {"new-node", 0, 1}, {"link", 6, 10}, {"lose-memory", 0, 1},
	{"fence", 10, 14}, {"remove-node", 3, 4}, {"take-name", 2, 3},
}

// dealer draws choices.
type dealer struct {
	r     *rand.Rand
	table []weight
	total int
	calm  bool
}

func newDealer(seed uint64, often []string) *dealer {
	d := &dealer{r: rand.New(rand.NewPCG(seed, 2)), table: slices.Clone(weights)}
	for i, w := range d.table {
		if slices.Contains(often, w.kind) {
			d.table[i].calm, d.table[i].stormy = 4*w.calm+12, 4*w.stormy+12
		}
	}
	d.calm = d.r.IntN(3) == 0
	for _, w := range d.table {
		d.total += d.of(w)
	}
	return d
}

func (d *dealer) of(w weight) int {
	if d.calm {
		return w.calm
	}
	return w.stormy
}

func (d *dealer) next() Choice {
	n := d.r.IntN(d.total)
	for _, w := range d.table {
		if n -= d.of(w); n < 0 {
			return Choice{w.kind, d.r.Uint64N(1_000_000)}
		}
	}
	panic("the weights do not add up")
}
