package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/stead-project/stead/spec/scalar"
)

// hugePages are those that the host has set apart, by the kernel's own count below dir, and all bytes
// that they take, also those of other sizes. A kernel without them has none.
func hugePages(dir string) (pages scalar.HugePages, bytes int64, err error) {
	sizes, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return pages, 0, nil
	}
	if err != nil {
		return pages, 0, err
	}
	for _, d := range sizes {
		var kib int64
		if _, err := fmt.Sscanf(d.Name(), "hugepages-%dkB", &kib); err != nil {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, d.Name(), "nr_hugepages"))
		if err != nil {
			return pages, 0, err
		}
		n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		if err != nil {
			return pages, 0, fmt.Errorf("%s: %w", d.Name(), err)
		}
		bytes += n * kib << 10
		switch kib << 10 {
		case scalar.Page2Mi:
			pages.Of2Mi = n * scalar.Page2Mi
		case scalar.Page1Gi:
			pages.Of1Gi = n * scalar.Page1Gi
		}
	}
	return pages, bytes, nil
}

// hugePagesDir is where the kernel says what there is.
const hugePagesDir = "/sys/kernel/mm/hugepages"
