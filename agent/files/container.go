package files

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// Parts are what the host prepared for one container.
type Parts struct {
	Attempt int
	Place   Place
	// Volumes holds the host's directory of each claim and emptyDir, by name.
	Volumes map[string]string
	// SubPaths holds the path of the host where each of SubPaths is mounted, by index.
	SubPaths map[int]string
	Log      runtime.Log
}

// Build describes a container of a life for the runtime. Errors: *MissingError.
// The result is the caller's.
func Build(l *records.Life, c *spec.Container, n Node, find Lookup, parts Parts) (runtime.Container, error) {
	v, err := environment(l, c, n, find)
	if err != nil {
		return runtime.Container{}, err
	}
	mounted, err := mounts(l, c, v, parts)
	if err != nil {
		return runtime.Container{}, err
	}
	out := runtime.Container{
		ID:       runtime.ContainerID{ID: l.Member.ID, Name: c.Name},
		Token:    l.Member.Token,
		Attempt:  parts.Attempt,
		Image:    c.Image,
		Command:  expandAll(c.Command, v),
		Args:     expandAll(c.Args, v),
		Dir:      c.WorkingDir,
		Hostname: l.Hostname(),
		Mounts:   mounted,
		Log:      parts.Log,
		Env:      v.list(),
	}
	secure(&out, l.Template.Spec.SecurityContext, c.SecurityContext)
	out.Resources, out.HugePages = Resources(c), c.Resources.HugePages()
	out.OOMScore = oomScore(&l.Template.Spec, c, n.Allocatable.MemoryBytes)
	return out, nil
}

func expandAll(in []string, v *variables) []string {
	var out []string
	for _, s := range in {
		out = append(out, spec.Expand(s, v.get))
	}
	return out
}

// mounts lists parents before what is mounted below them; v are the container's variables.
// Errors: *MissingError.
func mounts(l *records.Life, c *spec.Container, v *variables, parts Parts) ([]runtime.Mount, error) {
	media, readOnly, host := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, v := range l.Template.Spec.Volumes {
		media[v.Name], host[v.Name] = v.ShowsFiles(), v.HostPath != nil
		readOnly[v.Name] = media[v.Name] || v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ReadOnly
	}
	out := []runtime.Mount{
		{Source: parts.Place.Stead, Target: SteadDir, ReadOnly: true},
		{Target: SelfDir, MemoryBytes: selfBytes, MemoryFiles: selfFiles},
		{Source: filepath.Join(parts.Place.Etc, "hosts"), Target: "/etc/hosts", ReadOnly: true},
		{Source: filepath.Join(parts.Place.Etc, "resolv.conf"), Target: "/etc/resolv.conf", ReadOnly: true},
		{Source: filepath.Join(parts.Place.Etc, "hostname"), Target: "/etc/hostname", ReadOnly: true},
	}
	for i, m := range c.VolumeMounts {
		source := parts.Volumes[m.Name]
		below, err := subPathOf(&m, v)
		switch {
		case err != nil:
			return nil, err
		case media[m.Name]:
			source = filepath.Join(parts.Place.Media, m.Name)
			if below != "" { // of the present version: it does not follow later changes, as in Kubernetes
				source = filepath.Join(source, "..data", below)
			}
		case below != "":
			source = parts.SubPaths[i]
		}
		target := filepath.Clean(m.MountPath)
		out = slices.DeleteFunc(out, func(x runtime.Mount) bool { return x.Target == target })
		out = append(out, runtime.Mount{Source: source, Target: target, ReadOnly: m.ReadOnly || readOnly[m.Name], Host: host[m.Name]})
	}
	slices.SortStableFunc(out, func(a, b runtime.Mount) int { return strings.Compare(a.Target, b.Target) })
	return out, nil
}

func secure(out *runtime.Container, m *spec.MemberSecurityContext, c *spec.SecurityContext) {
	out.Seccomp, out.AppArmor = c.Confinement(m)
	if m != nil {
		out.StrictGroups = m.SupplementalGroupsPolicy != nil && *m.SupplementalGroupsPolicy == spec.GroupsStrict
		out.User, out.Group = m.RunAsUser, m.RunAsGroup
		out.NonRoot = m.RunAsNonRoot != nil && *m.RunAsNonRoot
		out.SupplementalGroups = slices.Clone(m.SupplementalGroups)
		if m.FSGroup != nil && !slices.Contains(out.SupplementalGroups, *m.FSGroup) {
			out.SupplementalGroups = append(out.SupplementalGroups, *m.FSGroup)
		}
		for _, s := range m.Sysctls {
			if out.Sysctls == nil {
				out.Sysctls = map[string]string{}
			}
			out.Sysctls[s.Key()] = s.Value
		}
	}
	if c == nil {
		return
	}
	if c.RunAsUser != nil {
		out.User = c.RunAsUser
	}
	if c.RunAsGroup != nil {
		out.Group = c.RunAsGroup
	}
	if c.RunAsNonRoot != nil {
		out.NonRoot = *c.RunAsNonRoot
	}
	out.ReadOnlyRoot = c.ReadOnlyRootFilesystem != nil && *c.ReadOnlyRootFilesystem
	out.Privileged = c.Privileged != nil && *c.Privileged
	out.NoNewPrivileges = c.AllowPrivilegeEscalation != nil && !*c.AllowPrivilegeEscalation
	if c.Capabilities != nil {
		out.AddCapabilities = slices.Clone(c.Capabilities.Add)
		out.DropCapabilities = slices.Clone(c.Capabilities.Drop)
	}
}

// Resources are what a container may use, as far as that can change while it runs.
func Resources(c *spec.Container) runtime.Resources {
	memory := c.Resources.Limits["memory"]
	return runtime.Resources{CPUMillis: c.Resources.Limits["cpu"].Milli, CPURequestMillis: c.Resources.Request("cpu").Milli, MemoryBytes: memory.Value()}
}
