package files

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/stead-project/stead/spec"
)

// MakeSubPaths makes the directories that the containers of a life mount by
// subPath out of its claims and emptyDirs. A path that leaves its volume through
// a link, which a container may have planted, is refused. The group, if any, may
// write in what is made.
func MakeSubPaths(l *spec.Life, volumes map[string]string, group *int64) error {
	for i := range l.Template.Spec.Containers {
		for _, m := range l.Template.Spec.Containers[i].VolumeMounts {
			dir, ok := volumes[m.Name]
			if !ok || m.SubPath == "" {
				continue
			}
			if err := makeSubPath(dir, filepath.Clean(m.SubPath), group); err != nil {
				return fmt.Errorf("volume %s: subPath %s: %w", m.Name, m.SubPath, err)
			}
		}
	}
	return nil
}

func makeSubPath(dir, sub string, group *int64) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	_, err = root.Stat(sub)
	if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := root.MkdirAll(sub, 0o755); err != nil {
		return err
	}
	if group == nil {
		return nil
	}
	if err := root.Chown(sub, -1, int(*group)); err != nil {
		return err
	}
	return root.Chmod(sub, 0o775|os.ModeSetgid)
}
