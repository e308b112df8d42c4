package volume

import (
	"errors"
	"fmt"
	"os"
	"slices"
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
	for {
		there, err := mountsAt(path)
		if len(there) == 0 {
			return err
		}
		for _, at := range there {
			if err := unix.Unmount(at, unix.UMOUNT_NOFOLLOW); err != nil {
				return fmt.Errorf("unmount %s: %w", at, err)
			}
		}
	}
}

// parseMounts lists the mount points at path and below it of a mountinfo table.
func parseMounts(table, path string) ([]string, error) {
	var found []string
	for line := range strings.Lines(table) {
		m, err := parseMount(line)
		if err != nil {
			return nil, fmt.Errorf("read mounts: %w", err)
		}
		if inside(m.point, path) {
			found = append(found, m.point)
		}
	}
	slices.Reverse(found) // the table is in the order of mounting
	return found, nil
}

// mount is what a line of a mountinfo table says.
type mount struct{ point, kind, source string }

func parseMount(line string) (mount, error) {
	before, after, _ := strings.Cut(line, " - ")
	fields := strings.Fields(before)
	if len(fields) < 6 {
		return mount{}, fmt.Errorf("unknown line %q", line)
	}
	kind, rest, _ := strings.Cut(after, " ")
	source, _, _ := strings.Cut(rest, " ") // it may be empty
	return mount{unescaped.Replace(fields[4]), kind, unescaped.Replace(source)}, nil
}

// unescaped undoes what the kernel writes in place of what would end a field.
var unescaped = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\043`, "#", `\134`, `\`)

// onMount says in a few words where path is mounted, for messages; "" when that cannot
// be seen.
func onMount(path string) string {
	table, _ := os.ReadFile("/proc/self/mountinfo")
	return mountAbove(string(table), path)
}

// mountAbove says what is mounted at the path or nearest above it, and on top there.
func mountAbove(table, path string) string {
	at, says := "", ""
	for line := range strings.Lines(table) {
		m, err := parseMount(line)
		if err == nil && inside(path, m.point) && len(m.point) >= len(at) {
			at, says = m.point, fmt.Sprintf(" (%s %s, mounted at %s)", m.kind, m.source, m.point)
		}
	}
	return says
}
