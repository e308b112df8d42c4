package spec

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/stead-project/stead/spec/scalar"
)

// Ordinals moves the range of ordinals.
type Ordinals struct {
	// Start is the first ordinal; default 0.
	Start int32 `json:"start,omitempty"`
	// Reserved ordinals, as 3 or "5-7", are skipped: three members are 0, 2 and 3 when 1
	// is reserved. The partition compares ordinals, those that are reserved included.
	Reserved []OrdinalSpan `json:"reserved,omitempty" stead:"only"`
}

// OrdinalSpan is a run of ordinals, both ends included.
type OrdinalSpan struct{ First, Last int32 }

// String is "3" or "5-7".
func (s OrdinalSpan) String() string {
	if s.First == s.Last {
		return strconv.Itoa(int(s.First))
	}
	return strconv.Itoa(int(s.First)) + "-" + strconv.Itoa(int(s.Last))
}

// MarshalJSON writes one ordinal as a number, more as text.
func (s OrdinalSpan) MarshalJSON() ([]byte, error) {
	if s.First == s.Last {
		return json.Marshal(s.First)
	}
	return json.Marshal(s.String())
}

// UnmarshalJSON reads a number, or text such as "5-7".
func (s *OrdinalSpan) UnmarshalJSON(b []byte) error { return scalar.Unmarshal(b, s) }

// FromLiteral implements Value.
func (s *OrdinalSpan) FromLiteral(l scalar.Literal) error {
	first, last, isRun := strings.Cut(l.Text, "-")
	if !isRun {
		last = first
	}
	a, err1 := strconv.ParseInt(first, 10, 32)
	b, err2 := strconv.ParseInt(last, 10, 32)
	if err1 != nil || err2 != nil || l.Kind != scalar.IntLiteral && l.Kind != scalar.TextLiteral {
		return scalar.Hint(scalar.Quote(l.Text)+" is neither an ordinal nor a range of ordinals", `write 3 or "5-7"`)
	}
	if a > b {
		return scalar.Hint(scalar.Quote(l.Text)+" runs backwards", "write "+scalar.Quote(last+"-"+first))
	}
	*s = OrdinalSpan{int32(a), int32(b)}
	return nil
}

// OrdinalRange is which ordinals the members of a set have: those from First to before
// End that are not reserved.
type OrdinalRange struct {
	First, End int
	reserved   []OrdinalSpan // within the range; ascending, apart
}

// Range is the range of so many members. It ends beyond every int32 when there are not
// so many ordinals.
func (o *Ordinals) Range(members int) OrdinalRange {
	if o == nil {
		return OrdinalRange{End: members}
	}
	r := OrdinalRange{First: int(o.Start), End: int(o.Start) + members}
	spans := slices.Clone(o.Reserved)
	slices.SortFunc(spans, func(a, b OrdinalSpan) int { return cmp.Compare(a.First, b.First) })
	next := r.First // all below it are counted
	for _, s := range spans {
		first, last := max(int(s.First), next), int(s.Last)
		if first >= r.End {
			break
		}
		if last < first {
			continue
		}
		r.reserved = append(r.reserved, OrdinalSpan{int32(first), int32(last)})
		r.End += last - first + 1
		next = last + 1
	}
	return r
}

// All lists the ordinals, ascending.
func (r OrdinalRange) All() []int {
	var list []int
	for o := r.Next(r.First); o < r.End; o = r.Next(o + 1) {
		list = append(list, o)
	}
	return list
}

// Has reports whether a member has this ordinal.
func (r OrdinalRange) Has(ordinal int) bool {
	return ordinal >= r.First && ordinal < r.End && r.Next(ordinal) == ordinal
}

// Next is the first ordinal of a member from this one on, or one from End on.
func (r OrdinalRange) Next(ordinal int) int {
	ordinal = max(ordinal, r.First)
	i, _ := slices.BinarySearchFunc(r.reserved, ordinal, func(s OrdinalSpan, o int) int { return cmp.Compare(int(s.Last), o) })
	for ; i < len(r.reserved) && int(r.reserved[i].First) <= ordinal; i++ {
		ordinal = int(r.reserved[i].Last) + 1
	}
	return ordinal
}

// MaxReplicas is the most members of a set: each takes an address of the cluster's range
// (65,534 by default) and a part of every decision about the set.
const MaxReplicas = 10_000

// Fits reports whether every ordinal is an int32.
func (r OrdinalRange) Fits() bool { return r.End <= math.MaxInt32 }
