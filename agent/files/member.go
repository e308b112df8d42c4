// Package files makes what a member sees of Stead: the directory /run/stead,
// ConfigMaps and Secrets as files and variables, hosts, resolv.conf and hostname,
// and, out of a life, the runtime's description of its containers. Builders are
// pure; writers replace files atomically, so that a reader sees the old content
// or the new one, and may be repeated after a crash at any point.
//
// /run/stead (a directory of the host, mounted read-only):
//
//	member.json         who this member is: name, namespace, set, ordinal, uid, token,
//	                    fqdn, address, node, service, domain, revision, reason, labels
//	set.json            its set as last seen: replicas, the ordinals it started with,
//	                    generation, bootstrapped, sequence, the last event included and
//	                    peers in ordinal order; the sequence never goes back
//	set.env             the same for a plain shell, which reads it with "."
//	events              what became of the set and its members, one JSON object a line,
//	                    numbered, the same for every member: the newest 256
//	confirmed           until when set.json and events are confirmed to be current: a
//	                    moment on the clock of /proc/uptime, moved on every few seconds
//	bootstrapped        exists (content "1") once every initial member was ready once, or
//	                    the set continues with data of an earlier one; never removed
//	volume-new          one line "<claim> first" or "<claim> replaced" for each volume
//	                    on which the member was never ready when its containers were
//	                    started; absent when there is none
//	forgotten           the token of the member's last life of which its peers were told (hook
//	                    forget) that the member has left for good; absent when a later one was ready
//	termination-reason  one word (ScaleDown, ScaleToZero, Delete, Replace, Update, Restart, Drain),
//	                    written before the stop signal
//
// Everything is on tmpfs below the agent's run directory: Secrets that are mounted as
// files never touch a disk. Those used as variables are in the container's description,
// which the runtime keeps on disk. What all members of a set read alike (set.json, set.env,
// events, bootstrapped, confirmed) SetFiles writes once and links into the directory of each.
package files

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// SteadDir is where members see their /run/stead.
const SteadDir = "/run/stead"

// SelfDir is where a container says something of its member (agent/self): a tmpfs of its own, made at each of its
// starts, of selfBytes for at most selfFiles files.
const (
	SelfDir   = SteadDir + "/self"
	selfBytes = 64 << 10
	selfFiles = 32
)

// The names of the files in /run/stead.
const (
	MemberFile       = "member.json"
	SetFile          = "set.json"
	SetEnvFile       = "set.env"
	EventsFile       = "events"
	ConfirmedFile    = "confirmed"
	BootstrappedFile = "bootstrapped"
	VolumeNewFile    = "volume-new"
	ForgottenFile    = "forgotten"
	TerminationFile  = "termination-reason"
)

// Place names the directories of the host that hold one member's files.
type Place struct {
	// Stead is mounted as /run/stead; Etc holds hosts, resolv.conf and hostname;
	// Media holds one directory for each volume that shows files.
	Stead, Etc, Media string
}

// At is the place of a member below the agent's run directory.
func At(runDir string, id spec.Identity) Place {
	below := func(kind string) string {
		return filepath.Join(runDir, kind, string(id.Namespace), id.MemberName())
	}
	return Place{Stead: below("members"), Etc: below("etc"), Media: below("files")}
}

// Node is what the builders need to know of the host.
type Node struct {
	Name   spec.NodeName
	HostIP string // "" when unknown
	// Gateway is the members' gateway and name server.
	Gateway string
	// ResolvConf is the host's resolv.conf; "": /etc/resolv.conf.
	ResolvConf string
	// HostsFile is the host's hosts; "": /etc/hosts.
	HostsFile string
	// Allocatable stands in for limits that a container does not set.
	Allocatable Allocatable
	// Services lists the services of a namespace that have an address, by name; nil: there are none.
	Services func(spec.Namespace) []records.ServiceLink
}

// memberDoc is the form of member.json.
type memberDoc struct {
	Name      string            `json:"name"`
	Namespace spec.Namespace    `json:"namespace"`
	Set       spec.SetName      `json:"set"`
	Ordinal   int               `json:"ordinal"`
	UID       string            `json:"uid"`
	Token     string            `json:"token"`
	FQDN      string            `json:"fqdn"`
	Address   string            `json:"address"`
	Node      spec.NodeName     `json:"node"`
	Service   string            `json:"service"`
	Domain    string            `json:"domain"`
	Revision  spec.RevisionHash `json:"revision"`
	Reason    records.Reason    `json:"reason"`
	Labels    map[string]string `json:"labels"`
}

// Member is the content of member.json: one line.
func Member(l *records.Life) ([]byte, error) {
	id := l.Member.ID
	doc := memberDoc{
		Name: id.MemberName(), Namespace: id.Namespace, Set: id.Set, Ordinal: id.Ordinal,
		UID: UID(l), Token: l.Member.Token.String(), FQDN: l.FQDN(), Address: address(l),
		Node: l.Member.Node, Service: l.Service, Domain: l.Domain,
		Revision: l.Member.Revision, Reason: l.Member.Reason, Labels: Labels(l),
	}
	b, err := json.Marshal(doc)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", MemberFile, err)
	}
	return append(b, '\n'), nil
}

// UID names one life, for good, in the form of a UUID, as metadata.uid of a pod does.
func UID(l *records.Life) string {
	sum := sha256.Sum256([]byte(string(l.Member.SetUID) + " " + l.Member.ID.String() + " " + l.Member.Token.String()))
	h := fmt.Sprintf("%x", sum[:16])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// Labels are the template's labels and those that Kubernetes gives each member.
func Labels(l *records.Life) map[string]string {
	return spec.MemberLabels(l.Member.ID, l.Member.Revision, l.Template.Metadata.Labels)
}

// VolumeNew is the content of volume-new; nil: the file must not be there.
func VolumeNew(l *records.Life) []byte {
	var out []byte
	for _, claim := range slices.Sorted(maps.Keys(l.FreshVolumes)) {
		out = fmt.Appendf(out, "%s %s\n", claim, l.FreshVolumes[claim])
	}
	return out
}

// Hostname is the content of /etc/hostname.
func Hostname(l *records.Life) []byte { return []byte(l.Hostname() + "\n") }

func address(l *records.Life) string {
	if !l.Member.Address.IsValid() {
		return ""
	}
	return l.Member.Address.String()
}

// setDoc is the form of set.json.
type setDoc struct {
	Set          spec.SetName  `json:"set"`
	Replicas     int           `json:"replicas"`
	Initial      int           `json:"initialReplicas"`
	Ordinals     []int         `json:"initialOrdinals"`
	Generation   int64         `json:"generation"`
	Bootstrapped bool          `json:"bootstrapped"`
	Sequence     spec.Sequence `json:"sequence"`
	// Event is the last event that is included.
	Event          records.ChangeID `json:"event"`
	ConfirmedUntil Uptime           `json:"confirmedUntil"`
	Namespace      spec.Namespace   `json:"namespace"`
	// Leader is the name of the member that leads; "": none does.
	Leader string         `json:"leader,omitempty"`
	Peers  []records.Peer `json:"peers"`
}

// Uptime is a moment on the boot-time clock, as the first number in /proc/uptime: in
// seconds, rounded down to hundredths.
type Uptime time.Duration

const hundredth = Uptime(10 * time.Millisecond)

func (u Uptime) String() string {
	return fmt.Sprintf("%d.%02d", u/(100*hundredth), u/hundredth%100)
}

// MarshalJSON writes a number of seconds.
func (u Uptime) MarshalJSON() ([]byte, error) { return []byte(u.String()), nil }

// UnmarshalJSON reads what MarshalJSON writes.
func (u *Uptime) UnmarshalJSON(b []byte) error {
	whole, part, _ := strings.Cut(string(b), ".")
	seconds, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || len(part) != 2 {
		return fmt.Errorf("invalid uptime %q: want seconds with two decimals", b)
	}
	n, err := strconv.ParseUint(part, 10, 8)
	if err != nil {
		return fmt.Errorf("invalid uptime %q: %w", b, err)
	}
	*u = Uptime(seconds)*100*hundredth + Uptime(n)*hundredth
	return nil
}
