package records

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/stead-project/stead/records/moves"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

// Node is nodes/<name>. Written by auth when the node is let in, or by dispatch when it
// joins without that; from then on only by control, until dispatch removes it.
type Node struct {
	Name   spec.NodeName     `json:"name"`
	UID    spec.UID          `json:"uid"`
	Labels map[string]string `json:"labels,omitempty"`
	Cordon bool              `json:"cordon,omitempty"`
	Taints []spec.Taint      `json:"taints,omitempty"`
	// Drain: its members are to stop, and it takes no others (SEMANTICS Part 4, Planned absence); nil: they stay.
	Drain *Drain `json:"drain,omitempty"`
	// EnrolledBy is the id of the client by whose join token it came; "": root's, or none.
	EnrolledBy spec.UID `json:"enrolledBy,omitempty"`
}

// Drain is what a user wants of a node that is to be empty, until somebody uncordons it. Written with Cordon,
// which is what an earlier server sees of it.
type Drain struct {
	// AtOnce: members stop whatever else of their sets is down, all at once.
	AtOnce bool `json:"atOnce,omitempty"`
	// Move: members with volumes there are moved to other nodes, with these (SAFETY S12).
	Move bool `json:"move,omitempty"`
	// By is who asked for it, as the client says; At is for people only.
	By string    `json:"by,omitempty"`
	At time.Time `json:"at"`
}

// Moves: members with volumes on the node are to be moved away, not only stopped.
func (d *Drain) Moves() bool { return d != nil && d.Move && !d.AtOnce }

// AllLabels are the node's labels and those that every node has.
func (n *Node) AllLabels() map[string]string {
	all := make(map[string]string, len(n.Labels)+2)
	maps.Copy(all, n.Labels)
	all[spec.HostnameLabel], all["kubernetes.io/os"] = string(n.Name), "linux"
	return all
}

// NodeFacts is nodefacts/<name>: what a node says of itself. Only writer: dispatch.
type NodeFacts struct {
	Name        spec.NodeName `json:"name"`
	UID         spec.UID      `json:"uid"`
	Boot        spec.BootID   `json:"boot"`
	CPUMillis   int64         `json:"cpuMillis"`
	MemoryBytes int64         `json:"memoryBytes"`
	// HugePages are what it has of them, apart from MemoryBytes.
	HugePages scalar.HugePages `json:"hugePages,omitzero"`
	Version   string           `json:"version"`
	// Level is that of templates that its agent carries out (spec.Level); 0, of an agent that does not
	// say: 1.
	Level  int    `json:"level,omitempty"`
	HostIP string `json:"hostIP,omitempty"`
	// HostIPs are its addresses, ascending, if there are several and none was given by --address: HostIP is the one of them that
	// its routes show, "" where they leave a choice.
	HostIPs []string `json:"hostIPs,omitempty"`
	// Tunnel is its end of the WireGuard tunnel; nil, of an agent that knows of none: it has none.
	Tunnel *TunnelFacts `json:"tunnel,omitempty"`
	// Classes are the storage classes the node has, ascending; none: LocalClass alone.
	Classes []string `json:"classes,omitempty"`
	// SharedClasses are those of them whose directory is one and the same on every node that
	// has them shared; FencedClasses those of these whose storage takes no late write of a
	// node whose lives count as over (SAFETY S14). Ascending.
	SharedClasses []string `json:"sharedClasses,omitempty"`
	FencedClasses []string `json:"fencedClasses,omitempty"`
	// Guards: the node's agent guards lives that have a bound.
	Guards bool `json:"guards,omitempty"`
	// Prepares: the node pulls images of updates before members are stopped. Prepared is what it says of those that it
	// was last sent, in order.
	Prepares bool       `json:"prepares,omitempty"`
	Prepared []Prepared `json:"prepared,omitempty"`
	// Hooks: the node's agent runs hooks by order (hooks.HookOrder).
	Hooks bool `json:"hooks,omitempty"`
	// Jobs: it runs jobs by order, each once (hooks.RunJob).
	Jobs bool `json:"jobs,omitempty"`
	// Moves: the node's agent moves volumes to and from other nodes. MoveReports is what it says of its parts, in order.
	Moves       bool               `json:"moves,omitempty"`
	MoveReports []moves.MoveReport `json:"moveReports,omitempty"`
	// MovesBack: the agent knows how to take the volumes of a move back (moves.MoveBack).
	MovesBack bool `json:"movesBack,omitempty"`
	// ListsVolumes: the node's agent says which volumes it has. UnknownVolumes are those of them that the store does not know;
	// AbsentVolumes are the ids of those that their records place there, and that it has not in their place, or sealed. Both are in order,
	// as of its hello.
	ListsVolumes   bool         `json:"listsVolumes,omitempty"`
	UnknownVolumes []HostVolume `json:"unknownVolumes,omitempty"`
	AbsentVolumes  []VolumeID   `json:"absentVolumes,omitempty"`
	// Epoch is that of the store when the node last said hello: in an older one it did
	// not say what it runs now (SAFETY S8).
	Epoch int64 `json:"epoch,omitempty"`
	// Strays are lives the node runs and the store does not know.
	Strays []spec.LifeID `json:"strays,omitempty"`
	// Conditions are what it is short of, in order.
	Conditions []NodeCondition `json:"conditions,omitempty"`
	// Known is what the node knew of the store when it last said hello, if that was more
	// than the store itself: the evidence for a hold.
	Known *Known `json:"known,omitempty"`
}

// Taken says to a machine of another uid that it does not get the node's name, and how a machine that was
// installed anew gets it.
func (n *Node) Taken() string {
	return fmt.Sprintf("the name %[1]s belongs to another machine (uid %[2]s); give this one another by --node. If it is that machine, "+
		"installed anew: 'stead node remove %[1]s' frees the name, and says what has to be done before that", n.Name, n.UID)
}

// Address is the host's own address; invalid: it says none. f may be nil.
func (f *NodeFacts) Address() (a netip.Addr) {
	if f != nil {
		a, _ = netip.ParseAddr(f.HostIP)
	}
	return a
}

// AddressHelp says of a node without an address why that is so, and what to write.
func (f *NodeFacts) AddressHelp() string {
	if len(f.HostIPs) > 1 {
		return fmt.Sprintf("it has several addresses (%s): start its agent with the one that other hosts reach, for example --address %s",
			strings.Join(f.HostIPs, ", "), f.HostIPs[0])
	}
	return "it has several addresses, or none: start its agent with --address"
}

// Carries reports whether the node's agent carries out templates of a level. f may be nil: nobody
// knows of any beyond the first.
func (f *NodeFacts) Carries(level int) bool { return level <= 1 || f != nil && f.Level >= level }

// leadingLevel is the level with which agents came to lead Services' addresses.
const leadingLevel = 2

// LeadsServices reports whether the node's agent leads the addresses of Services to their members.
func (f *NodeFacts) LeadsServices() bool { return f.Carries(leadingLevel) }

// inPlaceLevel is the level with which agents came to change lives in place.
const inPlaceLevel = 3

// ChangesInPlace reports whether the node's agent takes the order records.Member.Change. One that does not would take the new template
// for what the life runs.
func (f *NodeFacts) ChangesInPlace() bool { return f.Carries(inPlaceLevel) }

// Session is sessions/<name> (leased): the live connection of a node. Only writer: dispatch.
type Session struct {
	Node   spec.NodeName  `json:"node"`
	UID    spec.UID       `json:"uid"`
	Boot   spec.BootID    `json:"boot"`
	ID     spec.SessionID `json:"id"`
	Server string         `json:"server"`
	// At is where other hosts reach that server: host:port, with commas between them.
	At string `json:"at,omitempty"`
	// Resumed: the session before it lived until this one began, or those of most nodes were
	// gone at once. Until the node reports anew DNS keeps its last answer (SAFETY S15).
	Resumed bool `json:"resumed,omitempty"`
}

// HasClass reports whether the node has a storage class. A node that never
// connected, or is too old to say, has LocalClass.
func (f *NodeFacts) HasClass(class string) bool {
	return slices.Contains(f.ClassNames(), class)
}

// SharesClass reports whether the node has a storage class that is shared with others,
// FencesClass whether that also fences by itself.
func (f *NodeFacts) SharesClass(class string) bool {
	return f != nil && slices.Contains(f.SharedClasses, class) && f.HasClass(class)
}

// FencesClass: see SharesClass.
func (f *NodeFacts) FencesClass(class string) bool {
	return f.SharesClass(class) && slices.Contains(f.FencedClasses, class)
}

// ClassNames are the storage classes of the node, LocalClass among them. The slice
// must not be changed.
func (f *NodeFacts) ClassNames() []string {
	if f == nil || len(f.Classes) == 0 {
		return []string{spec.LocalClass}
	}
	return f.Classes
}

// KnownClasses tells people which storage classes the nodes have: "a, b".
func KnownClasses(nodes []*NodeFacts) string {
	var all []string
	for _, f := range nodes {
		all = append(all, f.ClassNames()...)
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), ", ")
}

// Fence is fences/<node>: a person's word that a machine is off, and what it ended (SAFETY
// S10). It holds for the lives it names and for no later ones, and is gone when the machine
// says hello again. Only writer: dispatch.
type Fence struct {
	Node spec.NodeName `json:"node"`
	UID  spec.UID      `json:"uid"`
	// Boot is the one that is over, as the node told it last.
	Boot  spec.BootID   `json:"boot"`
	Lives []spec.LifeID `json:"lives,omitempty"`
	// By is who said so, as the client says; At is for people only.
	By string    `json:"by,omitempty"`
	At time.Time `json:"at"`
}
