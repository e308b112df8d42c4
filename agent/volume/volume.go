// Package volume keeps the directories of members: volumes, which outlive
// everything and are never made again in place of a lost one, and scratch
// directories, which belong to one life.
//
//	<root>/volumes/<namespace>/<set>/<claim>-<ordinal>/owner.json   whose it is
//	<root>/volumes/<namespace>/<set>/<claim>-<ordinal>/data/        what is mounted
//	<class>/<namespace>/<set>/<claim>-<ordinal>/…                   of a declared storage class
//	<root>/volumes/<namespace>/.claims/<claim>/…                    of a PersistentVolumeClaim
//	<root>/volumes/.trash/<volume id>/                              given up; <class>/.trash likewise
//	<class>/.stead-disk                                             which disk this is
//	<root>/disks/<class>.json                                       which disk the class is on
//	<root>/made/<volume id>.json                                    the volume was made
//	<class>/.moving/<move>/<claim>/…                                staging: what comes from another node
//	<root>/moves/<move>.<role>.json                                 a part in a move
//	<root>/users/<volume id>.<set>-<ordinal>.json                   a life has the volume of a claim
//	<root>/scratch/<namespace>/<member>/<token>/<name>/             emptyDir
//	<run>/scratch/<namespace>/<member>/<token>/<name>/              emptyDir in memory (tmpfs)
//	<run>/subpath/<namespace>/<member>/<container>/<index>          what a subPath showed when it was resolved
//	<run>/subpath/<namespace>/<member>/host.<name>                  a hostPath, likewise
//
// and, of a storage class whose sizes are enforced, in place of data/ (image.go):
//
//	<class>/<namespace>/<set>/<claim>-<ordinal>/data.img            the volume's file system
//	<run>/images/<namespace>/<member>/<volume id>/                  where it is mounted for a member
//	<run>/images/<namespace>/<member>/<volume id>/data/             what is mounted of it
//	<run>/images/.moving/<move>/<volume id>/data/                   likewise, for a move
//
// The owner file is beside the data, where no database sees it.
// Containers see only what is below data or a scratch directory; every path is
// walked with os.Root or from descriptor to descriptor, so a symbolic link that one left
// there leads nowhere else, and what a container is shown by subPath is mounted by
// descriptor.
package volume

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/internal/durable"
	"github.com/stead-project/stead/internal/wrap"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

// Config says where directories are and whose they are.
type Config struct {
	// Root is the agent's directory on disk.
	Root string
	// RunDir is the agent's directory on tmpfs; scratch in memory and subPaths are
	// mounted below it.
	RunDir string
	// Classes are the directories of storage classes, absolute and none inside another.
	// spec.LocalClass is <root>/volumes unless it is named here. A directory that is
	// not there is not made: its filesystem may not be mounted yet.
	Classes map[string]string
	// Shared are those of them whose directory other nodes have, too; Node, this node's name,
	// keeps what each gave up there apart.
	Shared []string
	Node   spec.NodeName
	// Sized are those of them, and spec.LocalClass, whose new volumes have their size as a limit. None is Shared.
	Sized []string
	// Boot is the kernel's boot id and Clock the time since that boot: they count how
	// long volumes lie in the trash. Without a clock no time passes there.
	Boot  spec.BootID
	Clock func() time.Duration
	// Kept are further paths of the host that no member may mount, beside the directories above
	// and spec.SteadPaths.
	Kept []string
	// ClusterID is in every owner file: volumes of another cluster are refused.
	ClusterID string
}

// Volumes is the body of runtime.Volumes on directories of this host.
type Volumes struct {
	*disks
	scratchDirs
	cluster string
	node    spec.NodeName
	notes   sync.Mutex // of the trash, while one is read and written, or leaves it
	boot    spec.BootID
	clock   func() time.Duration
	making  sync.Map                // of VolumeID to *sync.Mutex: while a volume is made, mounted or grown
	unfit   sync.Map                // of VolumeID to error: why an image is smaller than it is to be
	step    func(what string) error // tests fail here
	kept    []string                // paths that no member mounts of its host
}

var _ runtime.Volumes = (*Volumes)(nil)

// New checks config and makes the directories that hold all others.
func New(config Config) (_ *Volumes, err error) {
	defer wrap.Error(&err, "make volumes")
	if config.Root == "" || config.RunDir == "" || config.ClusterID == "" {
		return nil, errors.New("root, run directory and cluster id are needed")
	}
	w := durable.Writer{Sync: (*os.File).Sync}
	v := &Volumes{
		disks:   &disks{writer: w, shared: config.Shared},
		cluster: config.ClusterID, node: config.Node, boot: config.Boot, clock: config.Clock,
		step: func(string) error { return nil },
	}
	if v.clock == nil {
		v.clock = func() time.Duration { return 0 }
	}
	var local string
	for _, d := range []struct {
		path *string
		dir  string
	}{
		{&local, filepath.Join(config.Root, "volumes")},
		{&v.scratch, filepath.Join(config.Root, "scratch")},
		{&v.memory, filepath.Join(config.RunDir, "scratch")},
		{&v.subpaths, filepath.Join(config.RunDir, "subpath")},
		{&v.images, filepath.Join(config.RunDir, "images")},
	} {
		if err := os.MkdirAll(d.dir, 0o700); err != nil {
			return nil, err
		}
		real, err := filepath.EvalSymlinks(d.dir) // as the kernel's list of mounts names it
		if err != nil {
			return nil, err
		}
		if *d.path, err = filepath.Abs(real); err != nil {
			return nil, err
		}
	}
	v.records, err = openRecords(config.Root, w)
	if err != nil {
		return nil, err
	}
	v.classes, err = classes(config.Classes, local)
	if err == nil {
		err = v.sizedClasses(config.Sized)
	}
	v.kept = slices.Concat(spec.SteadPaths(), config.Kept, []string{filepath.Dir(v.scratch), filepath.Dir(v.memory)}, slices.Collect(maps.Values(v.classes)))
	return v, err
}

// do does f, unless a test ends it just before.
func (v *Volumes) do(what string, f func() error) error {
	if err := v.step(what); err != nil {
		return err
	}
	return f()
}

// checkIdentity refuses names that are not a single path element. They were validated
// long before; here they become paths.
func checkIdentity(id spec.Identity, more ...string) error {
	if id.Ordinal < 0 {
		return fmt.Errorf("invalid ordinal %d", id.Ordinal)
	}
	names := append([]string{string(id.Namespace)}, more...)
	if name, is := id.Ref().ClaimName(); is {
		if id.Ordinal != 0 || !scalar.ValidSubdomain(name) || len(more) == 0 || more[0] != name {
			return fmt.Errorf("invalid claim %q", name)
		}
		names = slices.Delete(names, 1, 2)
	} else {
		names = append(names, string(id.Set))
	}
	for _, name := range names {
		if err := checkLabel(name); err != nil {
			return err
		}
	}
	return nil
}

func checkLabel(name string) error {
	if !scalar.ValidLabel(name) {
		return fmt.Errorf("invalid directory name %q", name)
	}
	return nil
}
