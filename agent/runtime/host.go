package runtime

import (
	"context"
	"net/netip"

	"github.com/stead-project/stead/spec"
)

// Network attaches lives to the members' network. Bodies: agent/network (real),
// and a fake beside fakert. For one identity one caller acts at a time; every
// method may be repeated.
type Network interface {
	// Attach gives the namespace at netns the address addr (/32), its route and
	// gateway; repeated calls repair. The host's side is derived from the identity.
	Attach(ctx context.Context, id spec.Identity, netns string, addr netip.Addr) error
	// Detach removes link and route of the identity and returns when they are gone;
	// absent is no error.
	Detach(ctx context.Context, id spec.Identity) error
	// Attached lists the identities that have a link on this host.
	Attached(ctx context.Context) ([]spec.Identity, error)
}

// Volumes keeps the directories of members. Body: agent/volume.
type Volumes interface {
	// Ensure makes or checks the directory of a volume and returns its path. The
	// owner file must name cluster, identity and volume id; ErrForeign if it names
	// another, ErrExists if there is data without an owner file. With fresh (no life
	// was ever ready on it) a missing directory is made; without, it must be there:
	// ErrNotFound, for an empty directory would be a silently lost volume.
	Ensure(ctx context.Context, id spec.Identity, v spec.MemberVolume, fresh bool, fsGroup *int64) (string, error)
	// Scratch makes an empty directory for one life (emptyDir; memory: tmpfs of at
	// most sizeBytes, 0: half of the machine's memory), or returns that of the same token.
	Scratch(ctx context.Context, id spec.Identity, token spec.Token, name string, memory bool, sizeBytes int64, fsGroup *int64) (string, error)
	// RemoveScratch unmounts and deletes everything Scratch made for the identity.
	RemoveScratch(ctx context.Context, id spec.Identity) error
	// Clean reports whether nothing Scratch made for the identity is left mounted.
	Clean(ctx context.Context, id spec.Identity) (bool, error)
}
