package manifest

import (
	"path"
	"slices"
	"strings"

	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

// template checks the members' template; claims are the names of the set's claims.
func (c *checks) template(t *spec.Template, claims map[string]bool) {
	const at = "spec.template"
	c.metadata(at+".metadata", &t.Metadata)
	s, at2 := &t.Spec, at+".spec"
	c.choice(at2+".restartPolicy", s.RestartPolicy, []string{"Always"}, "OnFailure", "Never")
	c.choice(at2+".dnsPolicy", s.DNSPolicy, []string{"ClusterFirst"}, "Default", "None", "ClusterFirstWithHostNet")
	c.between(at2+".terminationGracePeriodSeconds", *s.TerminationGracePeriodSeconds, 0, maxSeconds)
	c.memberContext(at2+".securityContext", s.SecurityContext)
	placementChecks{c}.placement(at2, s)
	volumes := c.volumes(at2+".volumes", s.Volumes, claims)
	if len(s.Containers) == 0 {
		c.fail(at2+".containers", "contains no container", "write at least one")
	}
	containers, seen := containerChecks{c, *s.TerminationGracePeriodSeconds}, map[string]bool{}
	for i := range s.Containers {
		p := index(at2+".containers", i)
		c.once(p+".name", s.Containers[i].Name, seen)
		containers.container(p, &s.Containers[i], volumes, s.SecurityContext)
		containers.notInit(p, &s.Containers[i])
	}
	for i := range s.InitContainers {
		p := index(at2+".initContainers", i)
		c.once(p+".name", s.InitContainers[i].Name, seen)
		containers.container(p, &s.InitContainers[i], volumes, s.SecurityContext)
		containers.initContainer(p, &s.InitContainers[i])
	}
	containers.hostPorts(at2, s)
	for _, claim := range sortedKeys(claims) {
		if claim != "" && !t.Mounts(claim) {
			c.warn("spec.volumeClaimTemplates", "no container mounts "+scalar.Quote(claim), "")
		}
	}
}

// volumes checks the template's volumes and returns all names that may be mounted.
func (c *checks) volumes(at string, volumes []spec.VolumeMedia, claims map[string]bool) map[string]bool {
	known, seen := map[string]bool{}, map[string]bool{}
	for claim := range claims {
		known[claim] = true
	}
	for i := range volumes {
		v, p := &volumes[i], index(at, i)
		c.label(p+".name", v.Name)
		c.once(p+".name", v.Name, seen)
		if claims[v.Name] && v.Name != "" {
			c.warn(p, "has no effect here", "the volumeClaimTemplate "+scalar.Quote(v.Name)+" takes its place, as in Kubernetes")
			continue
		}
		known[v.Name] = true
		c.exactlyOne(p, map[string]bool{"emptyDir": v.EmptyDir != nil, "configMap": v.ConfigMap != nil, "secret": v.Secret != nil})
		if v.EmptyDir != nil {
			c.emptyDir(p+".emptyDir", v.EmptyDir)
		}
		if v.ConfigMap != nil {
			c.subdomain(p+".configMap.name", v.ConfigMap.Name)
			c.files(p+".configMap", v.ConfigMap.Items, v.ConfigMap.DefaultMode)
		}
		if v.Secret != nil {
			c.subdomain(p+".secret.secretName", v.Secret.SecretName)
			c.files(p+".secret", v.Secret.Items, v.Secret.DefaultMode)
		}
	}
	delete(known, "")
	return known
}

func (c *checks) emptyDir(at string, e *spec.EmptyDir) {
	c.choice(at+".medium", e.Medium, []string{"", "Memory"}, "HugePages")
	if e.SizeLimit == nil {
		return
	}
	if e.Medium != "Memory" {
		c.fail(at+".sizeLimit", "is not enforced on disk", "remove it, or write medium: Memory")
		return
	}
	c.size(at+".sizeLimit", *e.SizeLimit, 1)
}

func (c *checks) files(at string, items []spec.KeyToPath, mode *int32) {
	c.mode(at+".defaultMode", mode)
	seen := map[string]bool{}
	for i, item := range items {
		p := index(at+".items", i)
		c.fileName(p+".key", item.Key)
		if c.required(p+".path", item.Path) && !insidePath(item.Path) {
			c.fail(p+".path", scalar.Quote(item.Path)+" points outside the volume", `write a relative path without ".."`)
		}
		c.once(p+".path", path.Clean(item.Path), seen)
		c.mode(p+".mode", item.Mode)
	}
}

func (c *checks) mode(at string, mode *int32) {
	if mode != nil && (*mode < 0 || *mode > 0o777) {
		c.fail(at, "is out of range", "write 0 to 0777")
	}
}

// fileName requires a key of a ConfigMap or Secret.
func (c *checks) fileName(at, key string) {
	c.given(at, key, validConfigKey, "key", "write letters, digits, -, _ and .")
}

// insidePath reports whether p is relative and never leaves its directory.
func insidePath(p string) bool {
	return !path.IsAbs(p) && !slices.Contains(strings.Split(p, "/"), "..") && !strings.ContainsRune(p, 0)
}

// ownPaths are mounted by Stead in every container, hidden by the runtime.
var (
	ownPaths = []string{"/run/stead", "/proc", "/sys"}
	hidden   = []string{"/", "/dev", "/etc/hosts", "/etc/hostname", "/etc/resolv.conf"}
)

func (c *checks) mountPoints(at string, mounts []spec.VolumeMount, volumes map[string]bool) {
	seen := map[string]bool{}
	for i, m := range mounts {
		p := index(at, i)
		if c.required(p+".name", m.Name) && !volumes[m.Name] {
			c.fail(p+".name", scalar.Quote(m.Name)+" is neither a volume nor a claim", names(volumes))
		}
		if m.SubPath != "" && !insidePath(m.SubPath) {
			c.fail(p+".subPath", scalar.Quote(m.SubPath)+" points outside the volume", `write a relative path without ".."`)
		}
		if !c.required(p+".mountPath", m.MountPath) {
			continue
		}
		clean := path.Clean(m.MountPath)
		switch {
		case !path.IsAbs(m.MountPath) || strings.ContainsAny(m.MountPath, ":\x00") || len(m.MountPath) > 4096:
			c.fail(p+".mountPath", scalar.Quote(m.MountPath)+" is not an absolute path", `write a path that starts with / and has no ":"`)
		case slices.Contains(hidden, clean) || slices.ContainsFunc(ownPaths, func(own string) bool { return clean == own || strings.HasPrefix(clean, own+"/") }):
			c.fail(p+".mountPath", scalar.Quote(m.MountPath)+" hides a path that every member needs", "mount it elsewhere")
		default:
			c.once(p+".mountPath", clean, seen)
		}
	}
}
