package manifest

import (
	"path"
	"slices"
	"strings"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

// template checks the members' template; claims are the names of the set's claims.
func (c *checks) template(t *spec.Template, claims map[string]bool) {
	const at = "spec.template"
	c.metadata(at+".metadata", &t.Metadata)
	if _, given := t.Metadata.Labels[records.LabelRole]; given {
		c.fail(at+".metadata.labels["+showKey(records.LabelRole)+"]", "is the label of the member that leads, which Stead gives it",
			"remove it: a member says that it leads by the file /run/stead/self/leader")
	}
	s, at2 := &t.Spec, at+".spec"
	c.choice(at2+".restartPolicy", s.RestartPolicy, []string{"Always"}, "OnFailure", "Never")
	nameChecks{c}.dns(at2, s)
	nameChecks{c}.hostAliases(at2+".hostAliases", s.HostAliases)
	c.pullSecrets(at2+".imagePullSecrets", s.ImagePullSecrets)
	c.between(at2+".terminationGracePeriodSeconds", *s.TerminationGracePeriodSeconds, 0, maxSeconds)
	contextChecks{c}.member(at2+".securityContext", s.SecurityContext)
	hostChecks{c}.hostAccess(at2, s)
	placementChecks{c}.placement(at2, s)
	volumes := c.volumes(at2+".volumes", s.Volumes, claims, s.HugePages())
	factChecks{c, containerNames(s)}.template(at2, s)
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

// volumes checks the template's volumes and returns all names that may be mounted; pages are the huge
// pages that the members request.
func (c *checks) volumes(at string, volumes []spec.VolumeMedia, claims map[string]bool, pages scalar.HugePages) map[string]bool {
	known, seen := map[string]bool{}, map[string]bool{}
	for claim := range claims {
		known[claim] = true
	}
	for i := range volumes {
		v, p := &volumes[i], index(at, i)
		c.label(p+".name", v.Name)
		c.once(p+".name", v.Name, seen)
		if claims[v.Name] && v.Name != "" {
			c.warn(p, noEffect, "the volumeClaimTemplate "+scalar.Quote(v.Name)+" takes its place, as in Kubernetes")
			continue
		}
		known[v.Name] = true
		c.exactlyOne(p, map[string]bool{"emptyDir": v.EmptyDir != nil, "configMap": v.ConfigMap != nil, "secret": v.Secret != nil,
			"projected": v.Projected != nil, "downwardAPI": v.DownwardAPI != nil, "hostPath": v.HostPath != nil,
			"persistentVolumeClaim": v.PersistentVolumeClaim != nil})
		hostChecks{c}.hostPath(p+".hostPath", v.HostPath)
		if v.EmptyDir != nil {
			c.emptyDir(p+".emptyDir", v.EmptyDir, pages)
		}
		if v.ConfigMap != nil {
			c.subdomain(p+".configMap.name", v.ConfigMap.Name)
			c.mode(p+".configMap.defaultMode", v.ConfigMap.DefaultMode)
			c.items(p+".configMap.items", v.ConfigMap.Items, map[string]bool{})
		}
		if v.PersistentVolumeClaim != nil {
			c.subdomain(p+".persistentVolumeClaim.claimName", v.PersistentVolumeClaim.ClaimName)
		}
		if v.Secret != nil {
			c.subdomain(p+".secret.secretName", v.Secret.SecretName)
			c.mode(p+".secret.defaultMode", v.Secret.DefaultMode)
			c.items(p+".secret.items", v.Secret.Items, map[string]bool{})
		}
	}
	delete(known, "")
	return known
}

func (c *checks) emptyDir(at string, e *spec.EmptyDir, pages scalar.HugePages) {
	media := []string{scalar.MediumHugePages, scalar.MediumHugePages2Mi, scalar.MediumHugePages1Gi}
	if slices.Contains(media, e.Medium) {
		hugePageMedium(c, at, e, pages)
		return
	}
	c.choice(at+".medium", e.Medium, append([]string{"", spec.MediumMemory}, media...))
	if e.SizeLimit == nil {
		return
	}
	c.size(at+".sizeLimit", *e.SizeLimit, 1)
	if e.Medium == "" {
		c.warn(at+".sizeLimit", noEffect, "the disk that an emptyDir takes is not bounded; with medium: Memory it is")
	}
}

// items checks which keys are shown where; seen holds the paths of the volume that are taken.
func (c *checks) items(at string, items []spec.KeyToPath, seen map[string]bool) {
	for i, item := range items {
		p := index(at, i)
		c.fileName(p+".key", item.Key)
		c.filePath(p+".path", item.Path, seen)
		c.mode(p+".mode", item.Mode)
	}
}

// filePath checks the path of a file of a volume, and adds it to seen.
func (c *checks) filePath(at, file string, seen map[string]bool) {
	if !c.required(at, file) {
		return
	}
	clean := path.Clean(file)
	switch {
	case !insidePath(file):
		c.fail(at, scalar.Quote(file)+" points outside the volume", `write a relative path without ".."`)
	case clean == "." || strings.HasPrefix(clean, ".."):
		c.fail(at, scalar.Quote(file)+" is not the name of a file", `write a relative path that does not start with ".."`)
	}
	c.once(at, clean, seen)
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

func (c *checks) subPath(at string, m *spec.VolumeMount) {
	for _, part := range []struct{ field, path string }{{".subPath", m.SubPath}, {".subPathExpr", m.SubPathExpr}} {
		if !insidePath(part.path) {
			c.fail(at+part.field, scalar.Quote(part.path)+" points outside the volume", `write a relative path without ".."`)
		}
	}
	if m.SubPath != "" && m.SubPathExpr != "" {
		c.fail(at, "has subPath and subPathExpr", "write one of them")
	}
}

func (c *checks) mountPoints(at string, mounts []spec.VolumeMount, volumes map[string]bool) {
	seen := map[string]bool{}
	for i, m := range mounts {
		p := index(at, i)
		if c.required(p+".name", m.Name) && !volumes[m.Name] {
			c.fail(p+".name", scalar.Quote(m.Name)+" is neither a volume nor a claim", names(volumes))
		}
		c.subPath(p, &m)
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
