package files

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// SubPaths are the parts of claims and emptyDirs that a container of a life mounts by
// subPath or subPathExpr; volumes holds their directories. Members write in these, so the host
// must resolve each for itself before it is mounted (runtime.Volumes.SubPath). Errors:
// *MissingError.
func SubPaths(l *records.Life, c *spec.Container, n Node, find Lookup, volumes map[string]string) ([]runtime.SubPath, error) {
	var group *int64
	if sc := l.Template.Spec.SecurityContext; sc != nil {
		group = sc.FSGroup
	}
	var v *variables // nil: no path is made of variables
	if slices.ContainsFunc(c.VolumeMounts, func(m spec.VolumeMount) bool { return m.SubPathExpr != "" }) {
		made, err := environment(l, c, n, find)
		if err != nil {
			return nil, err
		}
		v = made
	}
	var out []runtime.SubPath
	for i := range c.VolumeMounts {
		m := &c.VolumeMounts[i]
		below, err := subPathOf(m, v)
		if err != nil {
			return nil, err
		}
		if dir, ok := volumes[m.Name]; ok && below != "" {
			out = append(out, runtime.SubPath{
				ID: l.Member.ID, Container: c.Name, Index: i,
				Volume: m.Name, Dir: dir, Path: filepath.Clean(below), FSGroup: group,
			})
		}
	}
	return out, nil
}

// subPathOf is the path inside its volume that m mounts; "": all of the volume. v are the variables of
// which an expression is made. As in Kubernetes, each variable of an expression must have a value, and
// the result must be relative and without "..". Errors: *MissingError.
func subPathOf(m *spec.VolumeMount, v *variables) (string, error) {
	if m.SubPathExpr == "" {
		return m.SubPath, nil
	}
	var lacking []string
	below := spec.Expand(m.SubPathExpr, func(name string) (string, bool) {
		value, _ := v.get(name)
		if value == "" && !slices.Contains(lacking, name) {
			lacking = append(lacking, name)
		}
		return value, true
	})
	if len(lacking) > 0 {
		return "", &MissingError{fmt.Sprintf("subPathExpr %q of the mount at %s: no value for %s", m.SubPathExpr, m.MountPath, strings.Join(lacking, ", "))}
	}
	if path.IsAbs(below) || slices.Contains(strings.Split(below, "/"), "..") {
		return "", &MissingError{fmt.Sprintf("subPathExpr %q of the mount at %s becomes %q, which is outside the volume", m.SubPathExpr, m.MountPath, below)}
	}
	return below, nil
}

// missingSubPath is what the expressions of a container lack.
func missingSubPath(l *records.Life, c *spec.Container, n Node, find Lookup) error {
	_, err := SubPaths(l, c, n, find, nil)
	return err
}
