package manifest

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

// capabilities of Linux, without CAP_.
var capabilities = strings.Fields(`AUDIT_CONTROL AUDIT_READ AUDIT_WRITE BLOCK_SUSPEND BPF CHECKPOINT_RESTORE CHOWN
	DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID IPC_LOCK IPC_OWNER KILL LEASE LINUX_IMMUTABLE MAC_ADMIN MAC_OVERRIDE
	MKNOD NET_ADMIN NET_BIND_SERVICE NET_BROADCAST NET_RAW PERFMON SETFCAP SETGID SETPCAP SETUID SYS_ADMIN SYS_BOOT
	SYS_CHROOT SYS_MODULE SYS_NICE SYS_PACCT SYS_PTRACE SYS_RAWIO SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG SYSLOG WAKE_ALARM`)

// contextChecks checks security contexts.
type contextChecks struct{ *checks }

// container checks a container's security context against the member's.
func (c contextChecks) container(at string, s *spec.SecurityContext, member *spec.MemberSecurityContext) {
	if s == nil {
		s = &spec.SecurityContext{}
	}
	if member == nil {
		member = &spec.MemberSecurityContext{}
	}
	c.id(at+".runAsUser", s.RunAsUser)
	c.id(at+".runAsGroup", s.RunAsGroup)
	user, nonRoot := s.RunAsUser, s.RunAsNonRoot
	if user == nil {
		user = member.RunAsUser
	}
	if nonRoot == nil {
		nonRoot = member.RunAsNonRoot
	}
	if user != nil && *user == 0 && nonRoot != nil && *nonRoot {
		c.fail(at, "runAsNonRoot forbids runAsUser 0", "write another user, or runAsNonRoot: false")
	}
	if isTrue(s.Privileged) && s.AllowPrivilegeEscalation != nil && !*s.AllowPrivilegeEscalation {
		c.fail(at+".allowPrivilegeEscalation", "must not be false for a privileged container", "remove it, or privileged: true")
	}
	c.seccomp(at+".seccompProfile", s.SeccompProfile)
	c.appArmor(at+".appArmorProfile", s.AppArmorProfile)
	if s.Capabilities == nil {
		return
	}
	for i, name := range s.Capabilities.Add {
		c.capability(index(at+".capabilities.add", i), name)
	}
	for i, name := range s.Capabilities.Drop {
		c.capability(index(at+".capabilities.drop", i), name)
	}
}

func (c contextChecks) capability(at, name string) {
	if name == "ALL" || slices.Contains(capabilities, name) {
		return
	}
	fix := "see man 7 capabilities"
	if short := strings.TrimPrefix(strings.ToUpper(name), "CAP_"); short == "ALL" || slices.Contains(capabilities, short) {
		fix = "write " + short
	}
	c.fail(at, scalar.Quote(name)+" is not a capability", fix)
}

const maxID = math.MaxInt32 // of users and groups

func (c contextChecks) member(at string, s *spec.MemberSecurityContext) {
	if s == nil {
		return
	}
	c.id(at+".runAsUser", s.RunAsUser)
	c.id(at+".runAsGroup", s.RunAsGroup)
	c.id(at+".fsGroup", s.FSGroup)
	for i, g := range s.SupplementalGroups {
		c.between(index(at+".supplementalGroups", i), g, 0, maxID)
	}
	if s.FSGroupChangePolicy != nil {
		c.choice(at+".fsGroupChangePolicy", *s.FSGroupChangePolicy, []string{"Always", "OnRootMismatch"})
	}
	if s.SupplementalGroupsPolicy != nil {
		c.choice(at+".supplementalGroupsPolicy", *s.SupplementalGroupsPolicy, []string{spec.GroupsMerge, spec.GroupsStrict})
	}
	c.seccomp(at+".seccompProfile", s.SeccompProfile)
	c.appArmor(at+".appArmorProfile", s.AppArmorProfile)
}

var profileTypes = []string{spec.ProfileRuntimeDefault, spec.ProfileUnconfined, spec.ProfileLocalhost}

// seccomp checks a profile: as in Kubernetes, a file is named by a path that stays below its
// directory.
func (c contextChecks) seccomp(at string, p *spec.Profile) {
	if name := c.profile(at, p); name != "" && !insidePath(name) {
		c.fail(at+".localhostProfile", scalar.Quote(name)+" points outside the directory of profiles", `write a relative path without ".."`)
	}
}

// appArmor checks a profile, and warns of one that not all nodes have.
func (c contextChecks) appArmor(at string, p *spec.Profile) {
	name := c.profile(at, p)
	if name != "" && (strings.TrimSpace(name) != name || strings.ContainsRune(name, 0)) {
		c.fail(at+".localhostProfile", scalar.Quote(name)+" is not the name of a profile", "write it without blanks around it")
	}
	if p != nil && p.Type == spec.ProfileRuntimeDefault {
		c.warn(at, "has no effect on nodes whose kernel has no AppArmor", "")
	}
}

// profile checks what seccomp and AppArmor have in common, and returns the name of a Localhost profile.
func (c contextChecks) profile(at string, p *spec.Profile) string {
	if p == nil || !c.required(at+".type", p.Type) {
		return ""
	}
	c.choice(at+".type", p.Type, profileTypes)
	switch {
	case p.Type == spec.ProfileLocalhost && (p.LocalhostProfile == nil || *p.LocalhostProfile == ""):
		c.fail(at+".localhostProfile", "is missing", "type Localhost needs it")
	case p.Type != spec.ProfileLocalhost && p.LocalhostProfile != nil:
		c.fail(at+".localhostProfile", "has no meaning for type "+scalar.Quote(p.Type), "remove it, or write type: Localhost")
	case p.LocalhostProfile != nil && len(*p.LocalhostProfile) > maxProfileName:
		c.fail(at+".localhostProfile", fmt.Sprintf("is longer than %d characters", maxProfileName), "")
	case p.LocalhostProfile != nil:
		return *p.LocalhostProfile
	}
	return ""
}

// maxProfileName is Kubernetes' bound for AppArmor, and that of a path of Linux.
const maxProfileName = 4095

func (c contextChecks) id(at string, id *int64) {
	if id != nil {
		c.between(at, *id, 0, maxID)
	}
}

// validImage bounds the name of an image; the registry judges the rest.
func validImage(s string) bool { return len(s) <= 1024 && !strings.ContainsAny(s, " \t\r\n") }

var configKey = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)

// validEnvName: what Kubernetes takes for the name of a variable.
func validEnvName(s string) bool {
	return s != "" && len(s) <= 4096 && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' || r == '=' })
}

// validConfigKey: the name of a file in a ConfigMap or Secret.
func validConfigKey(s string) bool {
	return s != "" && len(s) <= 253 && configKey.MatchString(s) && s != "." && !strings.HasPrefix(s, "..")
}
