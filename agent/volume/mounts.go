package volume

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// mountsAt lists the mount points at path and below it, innermost first. A path
// under which more than one is stacked is listed as often. Where nothing is, nothing
// is mounted: the table is long where many members are.
func mountsAt(path string) ([]string, error) {
	if _, err := os.Lstat(path); errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("read mounts: %w", err)
	}
	return parseMounts(string(table), path)
}

// unmountAll unmounts all at path and below it, and returns when nothing is mounted there.
func unmountAll(path string) error {
	there, err := mountsAt(path)
	if err != nil {
		return err
	}
	for _, at := range there {
		if err := unix.Unmount(at, unix.UMOUNT_NOFOLLOW); err != nil {
			return fmt.Errorf("unmount %s: %w", at, err)
		}
	}
	if there, err = mountsAt(path); err != nil || len(there) > 0 {
		return errors.Join(err, fmt.Errorf("still mounted: %q", there))
	}
	return nil
}

// parseMounts reads the fifth field of each line of a mountinfo table.
func parseMounts(table, path string) ([]string, error) {
	var found []string
	for line := range strings.Lines(table) {
		fields := strings.Fields(line)
		if len(fields) < 5 {
			return nil, fmt.Errorf("read mounts: unknown line %q", line)
		}
		at := unescape(fields[4])
		if at == path || strings.HasPrefix(at, path+"/") {
			found = append(found, at)
		}
	}
	slices.Reverse(found) // the table is in the order of mounting
	return found, nil
}

// unescape undoes the kernel's \040 for space, \011, \012 and \134.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
