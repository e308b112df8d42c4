package containerdrt

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/containerd/containerd/v2/pkg/oci"
	rootfs "github.com/containerd/continuity/fs"

	"github.com/stead-project/stead/agent/runtime"
)

// checkCommand looks for the program before anything is started, so that the user
// reads what is wrong and not what runc says. What may lie below a mount is left
// to runc.
func checkCommand(s *oci.Spec, c runtime.Container, root string) error {
	name := s.Process.Args[0]
	var places []string
	switch {
	case filepath.IsAbs(name):
		places = []string{name}
	case strings.Contains(name, "/"):
		places = []string{filepath.Join(s.Process.Cwd, name)}
	default:
		for _, dir := range filepath.SplitList(lookupPath(s.Process.Env)) {
			places = append(places, filepath.Join("/", dir, name))
		}
	}
	problem := "not found"
	for _, place := range places {
		if mounted(c.Mounts, place) {
			return nil
		}
		path, err := rootfs.RootPath(root, place)
		if err != nil {
			continue
		}
		st, err := os.Stat(path)
		switch {
		case err != nil:
		case st.IsDir():
			problem = "is a directory"
		case st.Mode()&0o111 == 0:
			problem = "is not executable"
		default:
			return nil
		}
	}
	if problem == "not found" {
		return fmt.Errorf("command %q not found in image %s: %w", name, c.Image, runtime.ErrBadSpec)
	}
	return fmt.Errorf("command %q in image %s %s: %w", name, c.Image, problem, runtime.ErrBadSpec)
}

func lookupPath(env []string) string {
	for _, e := range env {
		if v, ok := strings.CutPrefix(e, "PATH="); ok {
			return v
		}
	}
	return ""
}

// mounted reports whether a path lies at or below a mount of the container.
func mounted(mounts []runtime.Mount, path string) bool {
	for _, m := range mounts {
		if t := filepath.Clean(m.Target); path == t || t == "/" || strings.HasPrefix(path, t+"/") {
			return true
		}
	}
	return false
}
