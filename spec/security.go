package spec

import (
	"cmp"
	"strings"
)

// MemberSecurityContext holds for all containers of a member.
type MemberSecurityContext struct {
	RunAsUser    *int64 `json:"runAsUser,omitempty"`
	RunAsGroup   *int64 `json:"runAsGroup,omitempty"`
	RunAsNonRoot *bool  `json:"runAsNonRoot,omitempty"`
	// FSGroup owns the member's volumes and is a supplemental group of its processes.
	FSGroup *int64 `json:"fsGroup,omitempty"`
	// FSGroupChangePolicy: with Always (default) each file of the volumes is given to FSGroup before a
	// life starts; with OnRootMismatch only if a volume's top is not FSGroup's yet.
	FSGroupChangePolicy *string `json:"fsGroupChangePolicy,omitempty"`
	SupplementalGroups  []int64 `json:"supplementalGroups,omitempty"`

	// SupplementalGroupsPolicy: Merge (default) adds the groups that the image's /etc/group gives the
	// user; with Strict those of the manifest are all.
	SupplementalGroupsPolicy *string `json:"supplementalGroupsPolicy,omitempty" stead:"since=2,except=Merge"`
	// SeccompProfile filters system calls. Default: RuntimeDefault, that of containerd.
	SeccompProfile *Profile `json:"seccompProfile,omitempty"`
	// AppArmorProfile counts on nodes with AppArmor. Default: Unconfined.
	AppArmorProfile *Profile `json:"appArmorProfile,omitempty" stead:"since=2"`
	// Sysctls are kernel parameters of the member's own namespaces.
	Sysctls []Sysctl `json:"sysctls,omitempty" stead:"since=2"`

	SELinuxOptions      any `json:"seLinuxOptions,omitempty" stead:"ignored,zero"`
	SELinuxChangePolicy any `json:"seLinuxChangePolicy,omitempty" stead:"ignored,same=Recursive"`
	WindowsOptions      any `json:"windowsOptions,omitempty" stead:"later,zero"`
}

// SecurityContext holds for one container and overrides the member's.
type SecurityContext struct {
	RunAsUser              *int64 `json:"runAsUser,omitempty"`
	RunAsGroup             *int64 `json:"runAsGroup,omitempty"`
	RunAsNonRoot           *bool  `json:"runAsNonRoot,omitempty"`
	ReadOnlyRootFilesystem *bool  `json:"readOnlyRootFilesystem,omitempty"`
	// AllowPrivilegeEscalation: with false nothing in the container gains rights by a set-user-id
	// file or by a file's capabilities (no_new_privs). Default true, as in Kubernetes.
	AllowPrivilegeEscalation *bool         `json:"allowPrivilegeEscalation,omitempty"`
	Capabilities             *Capabilities `json:"capabilities,omitempty"`
	SeccompProfile           *Profile      `json:"seccompProfile,omitempty"`
	AppArmorProfile          *Profile      `json:"appArmorProfile,omitempty" stead:"since=2"`

	// Privileged: it has all capabilities and devices of the host, and nothing is filtered or
	// masked. Needs the operator's permission (stead server --allow-privileged).
	Privileged *bool `json:"privileged,omitempty" stead:"since=2,except=false"`

	SELinuxOptions any `json:"seLinuxOptions,omitempty" stead:"ignored,zero"`
	ProcMount      any `json:"procMount,omitempty" stead:"later,same=Default"`
	WindowsOptions any `json:"windowsOptions,omitempty" stead:"later,zero"`
}

// Profile confines processes: by seccomp, or by AppArmor.
type Profile struct {
	// Type is RuntimeDefault, Unconfined or Localhost.
	Type string `json:"type" stead:"since=2,except=RuntimeDefault"`
	// LocalhostProfile is for type Localhost. Of seccomp it is a file below the agent's
	// --seccomp-dir, of AppArmor the name of a profile that is loaded on the node.
	LocalhostProfile *string `json:"localhostProfile,omitempty" stead:"since=2"`
}

// The values of Profile.Type.
const (
	ProfileRuntimeDefault = "RuntimeDefault"
	ProfileUnconfined     = "Unconfined"
	ProfileLocalhost      = "Localhost"
)

// Sysctl is a kernel parameter. Name has dots or slashes, as for sysctl(8).
type Sysctl struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Key is the name with dots between its parts, as Kubernetes' NormalizeName: net/ipv4/conf/eth0.1/rp_filter
// is net.ipv4.conf.eth0/1.rp_filter.
func (s Sysctl) Key() string {
	if i := strings.IndexAny(s.Name, "./"); i < 0 || s.Name[i] == '.' {
		return s.Name
	}
	return strings.Map(func(r rune) rune {
		switch r {
		case '.':
			return '/'
		case '/':
			return '.'
		}
		return r
	}, s.Name)
}

// groupAlways is the default of MemberSecurityContext.FSGroupChangePolicy.
const groupAlways = "Always"

// GivesAlways reports whether each file of the volumes is given to FSGroup.
func (m *MemberSecurityContext) GivesAlways() bool {
	return m.FSGroupChangePolicy == nil || *m.FSGroupChangePolicy == groupAlways
}

// The values of MemberSecurityContext.SupplementalGroupsPolicy.
const (
	GroupsMerge  = "Merge"
	GroupsStrict = "Strict"
)

// Confinement is what of s and the member's m, which may be nil, holds for a container: the
// container's own where it says something, and the defaults.
func (s *SecurityContext) Confinement(m *MemberSecurityContext) (seccomp, appArmor Profile) {
	seccomp.Type, appArmor.Type = ProfileRuntimeDefault, ProfileUnconfined
	var own, all [2]*Profile
	if m != nil {
		all = [2]*Profile{m.SeccompProfile, m.AppArmorProfile}
	}
	if s != nil {
		own = [2]*Profile{s.SeccompProfile, s.AppArmorProfile}
	}
	for i, to := range []*Profile{&seccomp, &appArmor} {
		if p := cmp.Or(own[i], all[i]); p != nil {
			*to = *p
		}
	}
	return seccomp, appArmor
}

// Capabilities changes the default set; names without CAP_, or ALL in Drop.
type Capabilities struct {
	Add  []string `json:"add,omitempty"`
	Drop []string `json:"drop,omitempty"`
}
