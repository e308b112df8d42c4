package manifest

import (
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

// memberCapabilities are those that a member may be given: the ones that Docker gives by
// default, and a few that databases ask for. All others reach beyond the member: to the
// host's kernel, its log, clock, audit and limits, or the member's own network address.
var memberCapabilities = strings.Fields(`AUDIT_WRITE CHOWN DAC_OVERRIDE FOWNER FSETID KILL MKNOD NET_BIND_SERVICE NET_RAW
	SETFCAP SETGID SETPCAP SETUID SYS_CHROOT
	IPC_LOCK IPC_OWNER LEASE NET_BROADCAST SYS_NICE SYS_PTRACE`)

// context checks a container's security context against the member's.
func (c containerChecks) context(at string, s *spec.SecurityContext, member *spec.MemberSecurityContext) {
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
	if s.AllowPrivilegeEscalation != nil && *s.AllowPrivilegeEscalation {
		c.fail(at+".allowPrivilegeEscalation", "is not supported yet", "write false, or remove it: no-new-privileges is always set")
	}
	if s.Capabilities == nil {
		return
	}
	for i, name := range s.Capabilities.Add {
		c.capability(index(at+".capabilities.add", i), name)
		if (name == "ALL" || slices.Contains(capabilities, name)) && !slices.Contains(memberCapabilities, name) {
			c.fail(index(at+".capabilities.add", i), scalar.Quote(name)+" reaches beyond the member",
				"remove it; allowed are "+strings.Join(memberCapabilities, ", "))
		}
	}
	for i, name := range s.Capabilities.Drop {
		c.capability(index(at+".capabilities.drop", i), name)
	}
}

func (c containerChecks) capability(at, name string) {
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

func (c *checks) memberContext(at string, s *spec.MemberSecurityContext) {
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
}

func (c *checks) id(at string, id *int64) {
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
