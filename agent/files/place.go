package files

import (
	"path/filepath"

	"github.com/stead-project/stead/spec"
)

// SteadDir is where members see their /run/stead.
const SteadDir = "/run/stead"

// The names of the files in /run/stead.
const (
	MemberFile       = "member.json"
	SetFile          = "set.json"
	EventsFile       = "events"
	ConfirmedFile    = "confirmed"
	BootstrappedFile = "bootstrapped"
	VolumeNewFile    = "volume-new"
	TerminationFile  = "termination-reason"
)

// Place names the directories of the host that hold one member's files.
type Place struct {
	// Stead is mounted as /run/stead; Etc holds hosts, resolv.conf and hostname;
	// Media holds one directory for each ConfigMap or Secret volume.
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
}
