package scalar

import "strings"

// HugePages are huge pages by their sizes, in bytes.
type HugePages struct {
	Of2Mi int64 `json:"2Mi,omitempty"`
	Of1Gi int64 `json:"1Gi,omitempty"`
}

// HugePagesPrefix begins the names of resources that are huge pages: hugepages-2Mi, hugepages-1Gi.
const HugePagesPrefix = "hugepages-"

// The media of an emptyDir in huge pages: with pages of the size that the member requests, or of one of those.
const (
	MediumHugePages    = "HugePages"
	MediumHugePages2Mi = "HugePages-2Mi"
	MediumHugePages1Gi = "HugePages-1Gi"
)

// The sizes of huge pages, in bytes.
const (
	Page2Mi int64 = 2 << 20
	Page1Gi int64 = 1 << 30
)

// HugePageSize is the size of the pages of a resource or medium: hugepages-2Mi, HugePages-1Gi; 0: it has none.
func HugePageSize(name string) int64 {
	switch _, size, _ := strings.Cut(name, "-"); size {
	case "2Mi":
		return Page2Mi
	case "1Gi":
		return Page1Gi
	}
	return 0
}

// Plus is p and sign times o.
func (p HugePages) Plus(o HugePages, sign int64) HugePages {
	return HugePages{p.Of2Mi + sign*o.Of2Mi, p.Of1Gi + sign*o.Of1Gi}
}

// Of are the pages of one size.
func (p HugePages) Of(size int64) int64 {
	if size == Page1Gi {
		return p.Of1Gi
	}
	return p.Of2Mi
}

// Within reports whether p is no more than o, of each size.
func (p HugePages) Within(o HugePages) bool { return p.Of2Mi <= o.Of2Mi && p.Of1Gi <= o.Of1Gi }
