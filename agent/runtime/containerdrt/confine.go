package containerdrt

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	goruntime "runtime"

	profiles "github.com/containerd/containerd/v2/contrib/apparmor"
	"github.com/containerd/containerd/v2/contrib/seccomp"
	"github.com/containerd/containerd/v2/core/containers"
	"github.com/containerd/containerd/v2/pkg/apparmor"
	"github.com/containerd/containerd/v2/pkg/oci"
	kernelseccomp "github.com/containerd/containerd/v2/pkg/seccomp"
	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/spec"
)

// defaultAppArmor is the name under which containerd's default profile is loaded, once a boot.
const defaultAppArmor = "stead-default"

// confine sets the profiles of seccomp and AppArmor. A privileged container has no filter, and sees
// and may change what others do not: as in Kubernetes with containerd.
func (r *lifecycle) confine(ctx context.Context, s *oci.Spec, c runtime.Container) error {
	if c.Privileged {
		for _, o := range []oci.SpecOpts{
			oci.WithMaskedPaths(nil), oci.WithReadonlyPaths(nil), oci.WithWriteableSysfs, oci.WithWriteableCgroupfs,
			oci.WithHostDevices, oci.WithAllDevicesAllowed,
		} {
			if err := o(ctx, nil, &containers.Container{}, s); err != nil {
				return fmt.Errorf("privileged: %w", err)
			}
		}
		c.Seccomp.Type = spec.ProfileUnconfined
	}
	var err error
	s.Linux.Seccomp, err = r.filter(s, c.Seccomp, kernelseccomp.IsEnabled())
	if err != nil {
		return fmt.Errorf("seccomp profile: %w", err)
	}
	if err := setAppArmor(ctx, s, c.AppArmor, apparmor.HostSupports()); err != nil {
		return fmt.Errorf("AppArmor profile: %w", err)
	}
	return nil
}

// filter is the filter of a profile; nil: none. A kernel without seccomp has no default one.
func (r *lifecycle) filter(s *oci.Spec, p spec.Profile, enabled bool) (*specs.LinuxSeccomp, error) {
	switch {
	case p.Type == spec.ProfileUnconfined:
		return nil, nil
	case p.Type == spec.ProfileLocalhost && !enabled:
		return nil, fmt.Errorf("the kernel of this node has no seccomp: %w", runtime.ErrBadSpec)
	case p.Type == spec.ProfileLocalhost:
		return readFilter(r.cfg.SeccompDir, deref(p.LocalhostProfile))
	case !enabled:
		return nil, nil
	}
	filter := seccomp.DefaultProfile(s)
	if only := nativeArch(goruntime.GOARCH); r.cfg.NativeOnly && only != "" {
		filter.Architectures = []specs.Arch{only}
	}
	return filter, nil
}

// nativeArch is the table of system calls of this program's own instruction set; "": the default filter has one only, or it is not
// known which.
func nativeArch(goarch string) specs.Arch {
	switch goarch {
	case "amd64":
		return specs.ArchX86_64
	case "arm64":
		return specs.ArchAARCH64
	}
	return ""
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// maxFilterBytes bounds a file of a seccomp profile.
const maxFilterBytes = 1 << 20

// readFilter reads a profile in the form of the OCI's runtime specification, as containerd does
// for Kubernetes. No link leads out of dir.
func readFilter(dir, name string) (*specs.LinuxSeccomp, error) {
	path := filepath.Join(dir, name)
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; put the file there on this node", path, err)
	}
	defer root.Close()
	f, err := root.Open(name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; put the file there on this node", path, err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFilterBytes+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", path, err)
	case len(text) > maxFilterBytes:
		return nil, fmt.Errorf("%s has more than %d bytes: %w", path, maxFilterBytes, runtime.ErrBadSpec)
	}
	filter := &specs.LinuxSeccomp{}
	if err := json.Unmarshal(text, filter); err != nil {
		return nil, fmt.Errorf("%s: %w: %w", path, runtime.ErrBadSpec, err)
	}
	if filter.DefaultAction == "" {
		return nil, fmt.Errorf("%s has no defaultAction: %w", path, runtime.ErrBadSpec)
	}
	return filter, nil
}

// setAppArmor sets the profile of s. Where AppArmor is off, the default is none.
func setAppArmor(ctx context.Context, s *oci.Spec, p spec.Profile, enabled bool) error {
	switch {
	case p.Type == spec.ProfileLocalhost && !enabled:
		return fmt.Errorf("%q cannot be applied, for AppArmor is off on this node: %w", deref(p.LocalhostProfile), runtime.ErrBadSpec)
	case p.Type == spec.ProfileLocalhost:
		s.Process.ApparmorProfile = deref(p.LocalhostProfile)
	case p.Type == spec.ProfileRuntimeDefault && enabled:
		return profiles.WithDefaultProfile(defaultAppArmor)(ctx, nil, &containers.Container{}, s)
	}
	return nil
}
