package files

import (
	"path/filepath"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// SubPaths are the parts of claims and emptyDirs that a container of a life mounts by
// subPath; volumes holds their directories. Members write in these, so the host must
// resolve each for itself before it is mounted (runtime.Volumes.SubPath).
func SubPaths(l *records.Life, c *spec.Container, volumes map[string]string) []runtime.SubPath {
	var group *int64
	if sc := l.Template.Spec.SecurityContext; sc != nil {
		group = sc.FSGroup
	}
	var out []runtime.SubPath
	for i, m := range c.VolumeMounts {
		if dir, ok := volumes[m.Name]; ok && m.SubPath != "" {
			out = append(out, runtime.SubPath{
				ID: l.Member.ID, Container: c.Name, Index: i,
				Volume: m.Name, Dir: dir, Path: filepath.Clean(m.SubPath), FSGroup: group,
			})
		}
	}
	return out
}
