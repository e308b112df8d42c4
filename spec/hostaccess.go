package spec

import (
	"path"
	"slices"
	"strings"
)

// HostAccess is what the operator lets members do beyond what every member may. The zero value
// allows nothing.
type HostAccess struct {
	// Sysctls are the kernel parameters that members may set: names, or beginnings with a * after them.
	Sysctls []string
	// Privileged: containers may be privileged, and may have any capability.
	Privileged bool
	// Network: members may be in the network of their hosts.
	Network bool
	// Paths are the directories of the hosts in which hostPath volumes may be: absolute; "/": any.
	Paths []string
}

// AllowsSysctl reports whether members may set the parameter of that key (Sysctl.Key).
func (h HostAccess) AllowsSysctl(key string) bool {
	return slices.ContainsFunc(h.Sysctls, func(allowed string) bool {
		beginning, many := strings.CutSuffix(allowed, "*")
		return key == allowed || many && strings.HasPrefix(key, beginning)
	})
}

// AnyHostAccess allows all that an operator can allow.
func AnyHostAccess() HostAccess {
	return HostAccess{Sysctls: []string{"*"}, Privileged: true, Network: true, Paths: []string{"/"}}
}

// AllowsPath reports whether members may mount that path of their host.
func (h HostAccess) AllowsPath(name string) bool {
	return slices.ContainsFunc(h.Paths, func(allowed string) bool { return pathHolds(allowed, name) })
}

// pathHolds reports whether the absolute path inner is outer, or below it.
func pathHolds(outer, inner string) bool {
	outer, inner = path.Clean(outer), path.Clean(inner)
	return outer == "/" || inner == outer || strings.HasPrefix(inner, outer+"/")
}

// PathsMeet reports whether one of two absolute paths is the other, or below it.
func PathsMeet(a, b string) bool { return pathHolds(a, b) || pathHolds(b, a) }

// SteadPaths are the directories of a host that hold what Stead's promises rest on: its own state,
// and containerd's. No member mounts them, or what holds them. An agent knows further ones.
func SteadPaths() []string {
	return []string{"/var/lib/stead", "/run/stead", "/etc/stead", "/var/lib/containerd", "/run/containerd"}
}

// HostPathVolume is a file or directory of the host.
type HostPathVolume struct {
	// Path is absolute, without "..". No part of it may be a symbolic link.
	Path string `json:"path"`
	// Type is what must be there: Directory, File, Socket, CharDevice or BlockDevice. DirectoryOrCreate
	// and FileOrCreate create it, with mode 0755 and 0644, for root. Default: whatever is there; a
	// directory is created if nothing is.
	Type *string `json:"type,omitempty"`
}
