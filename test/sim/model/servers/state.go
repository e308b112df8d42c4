// Package servers explores every interleaving of a few servers with the embedded store that join, leave, are replaced, lose their
// disks or get old copies of them, with the real decisions: quorum.Join, MayRemove, Next, Named, SetBack and Noted, and what servers
// and nodes know of the store (records.Known).
//
// The store is raft as small as may be: terms, votes, and logs of numbers. A candidate asks some of the voters that it knows, all at
// once; a leader sends one of them all that it has; what most voters have is confirmed, and changes of the members count from then on,
// one at a time, as in etcd. Any message may be lost, for none has to be sent. A person's command is done in the steps in which
// the server does it, and may break off after each, when nobody knows what was done.
//
// A host has an address. The last two share a name, so that one may take the other's place.
package servers

const (
	hosts = 4
	names = 3
	// ids are those of members, from 1.
	ids = 5
	// most is how many entries a log has room for.
	most = 11
	// lives are stores: the first one, and the one that is made of its data.
	lives = 2
)

// nameOf is the number of the server's name on a host.
func nameOf(host uint8) uint8 { return min(host, names-1) }

// Kinds of entries.
const (
	noop    uint8 = iota + 1 // of a leader that begins
	write                    // of a
	record                   // on host a, of the directory b
	forget                   // the record of the name a
	add                      // the member a on host b, as a learner
	publish                  // the member a has started
	promote                  // the member a votes
	remove                   // the member a
	hold                     // the store
	end                      // the store that names itself a
	declare                  // the epoch a
)

// entry is one of a log: term, kind, and what it is about.
type entry uint16

func enter(term, kind, a, b uint8) entry {
	return entry(term)<<12 | entry(kind)<<8 | entry(a)<<4 | entry(b)
}
func (e entry) term() uint8 { return uint8(e >> 12) }
func (e entry) kind() uint8 { return uint8(e>>8) & 15 }
func (e entry) a() uint8    { return uint8(e>>4) & 15 }
func (e entry) b() uint8    { return uint8(e) & 15 }

// changes: it changes the members.
func (e entry) changes() bool {
	return e.kind() == add || e.kind() == promote || e.kind() == remove
}

type log struct {
	n uint8
	e [most]entry
}

func (l *log) last() uint8 {
	if l.n == 0 {
		return 0
	}
	return l.e[l.n-1].term()
}

// cut leaves the first n.
func (l *log) cut(n uint8) {
	for ; l.n > n; l.n-- {
		l.e[l.n-1] = 0
	}
}

// begins: p is how it begins.
func (l *log) begins(p *log) bool {
	if l.n < p.n {
		return false
	}
	for i := range p.n {
		if l.e[i] != p.e[i] {
			return false
		}
	}
	return true
}

// data is what a member has on its disk; id 0: there is none.
type data struct {
	id, store  uint8
	term, vote uint8
	commit     uint8
	log
}

// mark is how far a member has come.
type mark struct{ term, index uint8 }

func (m mark) or(o mark) mark { return mark{max(m.term, o.term), max(m.index, o.index)} }

// directory is all that a server has on its disk.
type directory struct {
	uid      uint8 // 0: it is empty
	data     data
	marks    [ids + 1]mark
	unpacked bool
	// What it knows of the store.
	origin, epoch, rev uint8
}

type server struct {
	directory
	up, leads bool
	serves    bool // it was in touch with a leader since it started, and answers
	begun     bool // it has judged the store by what it knew
	loose     bool // it uses the last entry before that is on its disk
	back      bool // its data is an old copy
	match     [ids + 1]uint8
	last      [ids + 1]mark
	// told are, for the judge, how far members had come at the two looks before.
	told [2][ids + 1]mark
	old  directory // a copy; its uid is 0: there is none
	// newest is the data that was lost or overwritten last.
	newest data
}

// member is one of the store's.
type member struct {
	host         uint8 // and one more; 0: there is none
	votes, named bool
}

// content is what a store's log comes to.
type content struct {
	members [ids + 1]member
	gone    [ids + 1]bool
	uid, at [names]uint8 // of records: the directory, and its host
	epoch   uint8
	held    bool
	ended   uint8 // the store, and one more, that was ended
}

func (c *content) apply(e entry) {
	switch a, b := e.a(), e.b(); e.kind() {
	case record:
		c.uid[nameOf(a)], c.at[nameOf(a)] = b, a
	case forget:
		c.uid[a], c.at[a] = 0, 0
	case add:
		c.members[a] = member{host: b + 1}
	case publish:
		c.members[a].named = c.members[a].host != 0
	case promote:
		c.members[a].votes = c.members[a].host != 0
	case remove:
		c.members[a], c.gone[a] = member{}, true
	case hold:
		c.held = true
	case end:
		c.held, c.ended = true, a+1
	case declare:
		c.held, c.ended, c.epoch = false, 0, a
	}
}

// task is a person's command that is being carried out.
type task struct {
	verb  uint8
	step  uint8
	store uint8
	host  uint8 // of the server that joins, or the name of the one that leaves
	id    uint8 // of the member that leaves
	index uint8 // of the entry that is waited for
	entry entry
}

// node is a host with members.
type node struct {
	store              uint8 // with which it is connected, and one more
	origin, epoch, rev uint8 // what it knows
}

// State is one of the model.
type State struct {
	base    [lives]content
	truth   [lives]log // what was confirmed
	srv     [hosts]server
	task    task
	node    node
	acted   uint8 // the highest store that acted, and one more
	saved   content
	started [ids + 1]bool     // members that had data
	voted   [6][ids + 1]uint8 // for whom each has voted, and one more, by term
	// next are the numbers that are given next.
	nextID, nextUID, writes uint8
	// beyond: what comes of it is not promised.
	beyond bool
	left   Bounds
}

// Bounds are how often what is bounded may happen.
type Bounds struct {
	Servers uint8 // that are there at the begin
	Terms   uint8
	// Vain is how many elections nobody wins.
	Vain                                                 uint8
	Writes, Crashes, Losses, Copies, Looks, Putbacks     uint8
	Joins, Removals, Drops, Forces, Backups, Ends, Loose uint8
	// Struck is the host, and one more, whose disk is lost or copied, whose server is removed, and that does not go on alone; 0: any.
	Struck uint8
	// Alone: what has no majority starts without being asked by others, for their messages are lost.
	Alone bool
	// Down: all servers are down at the begin.
	Down bool
	// Spare: the last host may be used.
	Spare bool
}
