package home

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/spec"
)

// BootIDFile is where the kernel tells its boot id.
const BootIDFile = "/proc/sys/kernel/random/boot_id"

// BootID reads the boot id from a file; simulated hosts have files of their own.
func BootID(path string) (spec.BootID, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read the boot id: %w", err)
	}
	id := spec.BootID(strings.TrimSpace(string(b)))
	if id == "" {
		return "", fmt.Errorf("read the boot id: %w", errors.New(path+" is empty"))
	}
	return id, nil
}

// SinceBoot is CLOCK_BOOTTIME: it counts suspended time too and never jumps.
func SinceBoot() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic(err) // every Linux has it
	}
	return time.Duration(ts.Nano())
}
