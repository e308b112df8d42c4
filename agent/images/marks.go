// Package images removes images that nothing needs while the disk with them is too full, as
// Kubernetes' kubelet does: the least recently used first, and only what can be pulled again.
package images

import (
	"cmp"
	"slices"
	"time"

	"github.com/stead-project/stead/agent/registry"
	"github.com/stead-project/stead/agent/runtime"
)

// minAge is how long an image stays after it came, or after it was needed last.
const minAge = 2 * time.Minute

// Marks are percentages of a disk that are in use.
type Marks struct {
	High int // from here on images are removed; 0: never
	Low  int // until no more than this is in use
}

// full reports whether images are to be removed: at the high mark, and at the latest when there
// is no room for a pull.
func (m Marks) full(d runtime.ImageDisk) bool {
	return m.High > 0 && d.TotalBytes > 0 && (100*d.FreeBytes <= int64(100-m.High)*d.TotalBytes || d.FreeBytes < d.ReserveBytes)
}

// relieved reports whether enough was removed: no more than the low mark is in use, and there is
// room for a pull.
func (m Marks) relieved(d runtime.ImageDisk) bool {
	return 100*d.FreeBytes >= int64(100-m.Low)*d.TotalBytes && d.FreeBytes >= min(d.ReserveBytes+d.ReserveBytes/4, d.TotalBytes)
}

// seen is what is remembered of an image, by its digest.
type seen struct{ first, used time.Time }

// verdict is what is to become of a node's images.
type verdict struct {
	remove []runtime.StoredImage // the first is to go first
	// Those that stay, and why.
	needed, loaded, young int
}

// judge says which images may be removed: those that nothing needs, whose age is over, and that can
// be pulled again. Of those, it is the one first that was used longest ago; before them come those
// that were not used since this agent runs, in the order in which they came.
func judge(all []runtime.StoredImage, needed map[string]bool, known map[string]seen, now time.Time) verdict {
	var out verdict
	inUse := map[string]bool{} // by digest: one that is there under another name frees nothing
	for _, i := range all {
		if needed[i.Name] {
			inUse[i.Digest] = true
		}
	}
	for _, i := range all {
		k := known[i.Digest]
		switch {
		case inUse[i.Digest]:
			out.needed++
		case !i.Pulled:
			out.loaded++
		case now.Sub(k.first) < minAge, now.Sub(k.used) < minAge:
			out.young++
		default:
			out.remove = append(out.remove, i)
		}
	}
	slices.SortFunc(out.remove, func(a, b runtime.StoredImage) int {
		return cmp.Or(known[a.Digest].used.Compare(known[b.Digest].used), a.Since.Compare(b.Since), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// named are the names under which a runtime may have the images that templates name.
func named(refs []string) map[string]bool {
	out := map[string]bool{}
	for _, ref := range refs {
		out[ref], out[registry.FullName(ref)] = true, true
	}
	return out
}
