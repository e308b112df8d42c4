package manifest

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

// hostChecks checks what reaches beyond a member.
type hostChecks struct{ *checks }

// HostProblems tells what of a template the operator does not allow (any more).
func HostProblems(t *spec.Template, allowed spec.HostAccess) []Problem {
	const at = "spec.template.spec"
	c := hostChecks{&checks{host: allowed}}
	c.hostAccess(at, &t.Spec)
	for i := range t.Spec.Volumes {
		c.hostPathAllowed(index(at+".volumes", i)+".hostPath.path", t.Spec.Volumes[i].HostPath)
	}
	return c.problems.list
}

// hostAccess checks what reaches beyond a member and needs the operator's permission, but for
// volumes: of these, only what no claim takes the place of counts.
func (c hostChecks) hostAccess(at string, s *spec.MemberSpec) {
	c.namespaces(at, s)
	if m := s.SecurityContext; m != nil {
		c.sysctls(at+".securityContext.sysctls", m.Sysctls, s)
	}
	for i := range s.Containers {
		c.privileges(index(at+".containers", i)+".securityContext", s.Containers[i].SecurityContext)
	}
	for i := range s.InitContainers {
		c.privileges(index(at+".initContainers", i)+".securityContext", s.InitContainers[i].SecurityContext)
	}
}

// namespaces checks what of the host's own namespaces members are in.
func (c hostChecks) namespaces(at string, s *spec.MemberSpec) {
	if s.HostNetwork && !c.host.Network {
		c.fail(at+".hostNetwork", "the operator does not let members be in the network of their hosts",
			"start the servers with --allow-host-network, or write a hostPort at each port that is to be reached at the host's address")
	}
}

// memberCapabilities are those that a member may be given: the ones that Docker gives by
// default, and a few that databases ask for. All others reach beyond the member: to the
// host's kernel, its log, clock, audit and limits, or the member's own network address. They need
// the operator's permission, as privileged containers do.
var memberCapabilities = strings.Fields(`AUDIT_WRITE CHOWN DAC_OVERRIDE FOWNER FSETID KILL MKNOD NET_BIND_SERVICE NET_RAW
	SETFCAP SETGID SETPCAP SETUID SYS_CHROOT
	IPC_LOCK IPC_OWNER LEASE NET_BROADCAST SYS_NICE SYS_PTRACE`)

// privileges checks what only an operator who trusts the authors of manifests allows.
func (c hostChecks) privileges(at string, s *spec.SecurityContext) {
	if s == nil || c.host.Privileged {
		return
	}
	if isTrue(s.Privileged) {
		c.fail(at+".privileged", "the operator does not let containers be privileged",
			"start the servers with --allow-privileged, or remove it; set kernel parameters such as vm.max_map_count on the hosts")
	}
	if s.Capabilities == nil {
		return
	}
	for i, name := range s.Capabilities.Add {
		if (name == "ALL" || slices.Contains(capabilities, name)) && !slices.Contains(memberCapabilities, name) {
			c.fail(index(at+".capabilities.add", i), scalar.Quote(name)+" reaches beyond the member",
				"remove it, or start the servers with --allow-privileged; always allowed are "+strings.Join(memberCapabilities, ", "))
		}
	}
}

func isTrue(b *bool) bool { return b != nil && *b }

// safeSysctls are Kubernetes' set of 1.33: parameters of a member's own namespaces that harm
// nobody else.
var safeSysctls = strings.Fields(`kernel.shm_rmid_forced net.ipv4.ip_local_port_range net.ipv4.tcp_syncookies net.ipv4.ping_group_range
	net.ipv4.ip_unprivileged_port_start net.ipv4.ip_local_reserved_ports net.ipv4.tcp_keepalive_time net.ipv4.tcp_fin_timeout
	net.ipv4.tcp_keepalive_intvl net.ipv4.tcp_keepalive_probes net.ipv4.tcp_rmem net.ipv4.tcp_wmem`)

// ownSysctls are the beginnings of all parameters that namespaces have, as Kubernetes knows them.
var ownSysctls = strings.Fields("kernel.shm kernel.msg kernel.sem fs.mqueue. net.")

// sysctlName is Kubernetes' pattern.
var sysctlName = regexp.MustCompile(`^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$`)

func validSysctl(name string) bool { return len(name) <= 253 && sysctlName.MatchString(name) }

func (c hostChecks) sysctls(at string, sysctls []spec.Sysctl, member *spec.MemberSpec) {
	seen := map[string]bool{}
	for i, s := range sysctls {
		p := index(at, i)
		key := s.Key()
		c.once(p+".name", key, seen)
		own := func(beginning string) bool { return strings.HasPrefix(key, beginning) }
		switch {
		case !c.required(p+".name", s.Name):
		case !validSysctl(s.Name):
			c.fail(p+".name", scalar.Quote(s.Name)+" is not the name of a kernel parameter", "write it as in net.ipv4.tcp_fin_timeout")
		case member.HostNetwork && own("net."):
			c.fail(p+".name", scalar.Quote(key)+" counts for the whole host beside hostNetwork", "remove it, and set it on the hosts, in /etc/sysctl.d")
		case slices.Contains(safeSysctls, key):
		case !slices.ContainsFunc(ownSysctls, own):
			c.fail(p+".name", scalar.Quote(key)+" counts for the whole host", "remove it, and set it on the hosts, in /etc/sysctl.d")
		case !c.host.AllowsSysctl(key):
			c.fail(p+".name", "the operator does not let members set "+scalar.Quote(key), "start the servers with --allow-sysctl "+key+", or remove it")
		}
	}
}

// hostPathTypes are those of Kubernetes.
var hostPathTypes = []string{"", "DirectoryOrCreate", "Directory", "FileOrCreate", "File", "Socket", "CharDevice", "BlockDevice"}

// hostPath checks what is said of a path of the host, whoever allows it.
func (c hostChecks) hostPath(at string, v *spec.HostPathVolume) {
	if v == nil || !c.required(at+".path", v.Path) {
		return
	}
	if !validHostPath(v.Path) {
		c.fail(at+".path", scalar.Quote(v.Path)+" is not a path of a host", `write an absolute path without ".." and ":"`)
	}
	if v.Type != nil {
		c.choice(at+".type", *v.Type, hostPathTypes)
	}
	c.hostPathAllowed(at+".path", v)
}

func validHostPath(p string) bool {
	return path.IsAbs(p) && len(p) <= 4096 && !strings.ContainsAny(p, ":\x00") && !slices.Contains(strings.Split(p, "/"), "..")
}

func (c hostChecks) hostPathAllowed(at string, v *spec.HostPathVolume) {
	if v == nil || !validHostPath(v.Path) {
		return
	}
	for _, own := range spec.SteadPaths() {
		if spec.PathsMeet(own, v.Path) {
			c.fail(at, scalar.Quote(v.Path)+" would show members what Stead keeps in "+own, "write another directory, or one in it")
			return
		}
	}
	if !c.host.AllowsPath(v.Path) {
		c.fail(at, "the operator does not let members mount "+scalar.Quote(path.Clean(v.Path))+" of their hosts",
			"start the servers with --allow-host-path "+path.Clean(v.Path)+", or "+onNodes)
	}
}
