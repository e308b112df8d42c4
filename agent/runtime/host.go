package runtime

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
)

// Network attaches lives to the members' network. Bodies: agent/network (real),
// and a fake beside fakert. For one identity one caller acts at a time; every
// method may be repeated.
type Network interface {
	// Attach gives the namespace at netns the address addr (/32), its route and
	// gateway, and leads these ports of the host there; repeated calls repair. The host's
	// side is derived from the identity. ErrPortTaken: a port is another's; all else is done.
	Attach(ctx context.Context, id spec.Identity, netns string, addr netip.Addr, ports ...spec.HostPort) error
	// Detach removes link, route and host ports of the identity and returns when they are
	// gone; absent is no error.
	Detach(ctx context.Context, id spec.Identity) error
	// Attached lists the identities that have a link on this host.
	Attached(ctx context.Context) ([]spec.Identity, error)
}

// Scratch describes an empty directory of one life.
type Scratch struct {
	ID    spec.Identity
	Token spec.Token
	Name  string // that of the volume in the template
	// Memory: on a tmpfs of at most SizeBytes; 0: half of the machine's memory.
	Memory    bool
	SizeBytes int64
	// HugePage, when not 0, is the size of the huge pages that it is in; SizeBytes bounds that, too.
	HugePage int64
	// FSGroup may write in it; nil: it is left as it is made, mode 0777.
	FSGroup *int64
}

// Group may read and write in a volume: fsGroup.
type Group struct {
	ID int64
	// Whole: each file is looked at, also if the volume's top is the group's: fsGroupChangePolicy
	// Always. Without, a volume with such a top is left as it is: OnRootMismatch.
	Whole bool
	// Progress is written meanwhile; nil: nobody looks.
	Progress *GroupProgress
}

// SubPath names a part of a volume that a container mounts.
type SubPath struct {
	ID        spec.Identity
	Container string
	// Index is that of the mount in the container's template.
	Index int
	// Volume is the volume's name in the template and Dir its directory, as Ensure or
	// Scratch returned it.
	Volume, Dir string
	// Path is relative, without "..".
	Path string
	// FSGroup may write in what is made; nil: root alone.
	FSGroup *int64
}

// HostPath names a file or directory of the host that a life mounts.
type HostPath struct {
	ID   spec.Identity
	Name string // that of the volume in the template
	Path string // absolute
	Type string // as spec.HostPathVolume.Type
}

// Trashed is a volume in the trash of a node.
type Trashed struct {
	ID     spec.Identity
	Claim  spec.ClaimName
	Volume records.VolumeID
	Number int
	Class  string
	// Left is how long it is to stay there; 0: its time is over.
	Left time.Duration
	// Turn and SizeBytes are as the order said, by which it came there.
	Turn      int
	SizeBytes int64
}

// VolumeUse is how full a volume is.
type VolumeUse struct {
	ID     spec.Identity
	Claim  spec.ClaimName
	Volume records.VolumeID
	// UsedBytes are what its files take on the disk, as they were measured Age ago; -1: not measured yet.
	UsedBytes int64
	Age       time.Duration
	// FreeBytes can still be written to the file system that it is on, whose size is TotalBytes; -1: not known.
	FreeBytes, TotalBytes int64
	// Problem is why it is smaller than was ordered; "": it is not.
	Problem string
}

// VolumeCause is the one word for why a volume could not be had or given up.
func VolumeCause(err error) causes.Cause {
	switch {
	case errors.Is(err, ErrSealed):
		return causes.VolumeSealed
	case errors.Is(err, ErrForeign):
		return causes.VolumeForeign
	case errors.Is(err, ErrExists):
		return causes.VolumeOccupied
	case errors.Is(err, ErrAbsent):
		return causes.VolumeMissing
	case errors.Is(err, ErrNotFound):
		return causes.DiskMissing
	case errors.Is(err, ErrNoSpace):
		return causes.VolumeNoSpace
	case errors.Is(err, ErrDamaged):
		return causes.VolumeDamaged
	}
	return causes.VolumeRefused
}

// Volumes keeps the directories of members. Body: agent/volume.
type Volumes interface {
	// Ensure makes or checks a volume that the member id has, mounts it if it is to be, and returns
	// the path of its directory. The owner file must name cluster, identity and volume id; ErrForeign if it names
	// another, ErrExists if there is data without an owner file. With fresh (no life
	// was ever ready on it) a missing directory is made, once: of a volume that this host
	// made before, and of one that is not fresh, it must be there: ErrAbsent, for an empty
	// directory would be a silently lost volume. ErrSealed: a move has sealed it. ErrNotFound: its storage class, or the
	// directory of that, is not there, or is on another disk than it was at first. ErrNoSpace: its size is to be
	// kept free for it, and is not there. ErrDamaged: its own file system needs repair. With a group, all
	// in it is given to that, until ctx ends; once more from the start when it is called again.
	Ensure(ctx context.Context, id spec.Identity, v records.MemberVolume, fresh bool, group *Group) (string, error)
	// NoteUser notes, durably and before Ensure hands it out, that a life has the volume of a claim
	// that several lives may have. Of each identity the last life is kept.
	NoteUser(ctx context.Context, volume records.VolumeID, life spec.LifeID) error
	// Users are the lives that were noted of a volume, also those that are over, by identity.
	Users(ctx context.Context, volume records.VolumeID) ([]spec.LifeID, error)
	// Reclaim moves an unused volume into the trash, and returns when that is
	// durable; once it is there, it has no effect. ErrAbsent: it is neither in its
	// place nor in the trash. ErrNotFound: its storage class, or the directory of that,
	// is not there. ErrForeign, ErrExists: as Ensure; nothing was touched.
	Reclaim(ctx context.Context, o records.VolumeOrder) error
	// Restore moves a volume from the trash back into its place, and returns when that is
	// durable; once it is there, it has no effect. ErrAbsent: it is neither in its
	// place nor in the trash, or is being erased. ErrForeign, ErrExists: something else
	// is in its place; nothing was touched.
	Restore(ctx context.Context, o records.VolumeOrder) error
	// Lost looks for a volume that is said to be lost: VolumeFound (it is in its
	// place, untouched), VolumeTrashed, or VolumeAbsent. What is left of one whose data are
	// not there is moved to the trash. ErrNotFound, ErrForeign, ErrExists: as Ensure; they
	// prove nothing.
	Lost(ctx context.Context, o records.VolumeOrder) (records.VolumeState, error)
	// InPlace lists the volumes that are in their places, sealed ones among them, in order; and as Unseen those of which that is not
	// known before ctx ends, for their disk is not there, or does not answer. An error says that the list is not whole.
	InPlace(ctx context.Context) ([]records.HostVolume, error)
	// Trash lists what is in the trash, by volume id. An entry that cannot be read is
	// left out, and stays; an error says that the list is not whole, and names what is
	// not known: a storage class that is not there, an entry that cannot be read.
	Trash(ctx context.Context) ([]Trashed, error)
	// Erase deletes what is in the trash permanently, and continues where it was interrupted;
	// absent is no error. ErrExists: its time is not over; ErrNotFound: its storage class is not
	// there, so that nothing is known of it; ErrForeign: its owner file cannot be read or is
	// another's. Nothing was touched then.
	Erase(ctx context.Context, class string, id records.VolumeID) error
	// Grow gives a volume the size that an order has, if its class enforces sizes, and reports whether it was
	// smaller. Lives may use it meanwhile, and have the space when it returns. ErrAbsent: it is not there (yet);
	// ErrNoSpace: its disk has no room for it; ErrForeign, ErrExists, ErrDamaged: as Ensure. It is as large as before then.
	Grow(ctx context.Context, o records.VolumeOrder) (grown bool, err error)
	// Scratch makes an empty directory for one life (emptyDir), or returns that of the
	// same token.
	Scratch(ctx context.Context, s Scratch) (string, error)
	// SubPath resolves a path inside a volume, makes it as a directory if nothing is
	// there, and returns where exactly that is mounted on the host: no member can make
	// that path show anything else. It is asked for at every creation of a container,
	// and replaces what it mounted for the creation before. A path that leaves the
	// volume through a link is refused.
	SubPath(ctx context.Context, s SubPath) (string, error)
	// HostPath finds, or makes, what a life mounts of its host, and returns where exactly that is
	// mounted. A path with a symbolic link, and one that holds, or is in, what Stead keeps, is
	// refused.
	HostPath(ctx context.Context, p HostPath) (string, error)
	// RemoveScratch unmounts and deletes everything Scratch, SubPath and HostPath made for the
	// identity, and unmounts the volumes that were mounted for it; what a SubPath or HostPath showed is left as it is.
	RemoveScratch(ctx context.Context, id spec.Identity) error
	// Clean reports whether nothing Scratch, SubPath, HostPath or Ensure made for the identity is left mounted.
	Clean(ctx context.Context, id spec.Identity) (bool, error)
}
