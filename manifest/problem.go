package manifest

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Problem is one thing that is wrong in a manifest, or (as a warning) one that
// changes nothing.
type Problem struct {
	// File is the Source's name; empty when the value came from no file.
	File string
	// Line and Column count from 1; 0: not known.
	Line, Column int
	// Path is the field, as in spec.template.spec.containers[0].image.
	Path string
	// What is wrong; Fix is what would be right, or empty.
	What, Fix string

	// Of a warning of Parse: the kind, and the number, of the object that it is of.
	kind   string
	object int
}

// String is "file:line:column: path: what is wrong; what would be right".
func (p Problem) String() string {
	var out strings.Builder
	if p.File != "" {
		out.WriteString(p.File + ":")
		if p.Line > 0 {
			fmt.Fprintf(&out, "%d:%d:", p.Line, p.Column)
		}
		out.WriteByte(' ')
	}
	if p.Path != "" {
		out.WriteString(p.Path + ": ")
	}
	out.WriteString(p.What)
	if p.Fix != "" {
		out.WriteString("; " + p.Fix)
	}
	return out.String()
}

// maxProblems limits the problems of one source.
const maxProblems = 1000

// problemList gathers problems by path; positions are added by whoever knows them.
type problemList struct{ list []Problem }

func (p *problemList) add(path, what, fix string) {
	p.list = append(p.list, Problem{Path: path, What: what, Fix: fix})
}

// sortProblems orders by position and cuts off those beyond the limit.
func sortProblems(list []Problem) []Problem {
	slices.SortStableFunc(list, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	if len(list) > maxProblems {
		list = append(list[:maxProblems:maxProblems], Problem{File: list[0].File, What: "more problems are not shown"})
	}
	return list
}

var anyIndex = regexp.MustCompile(`\[\d+\]`)

// counted shortens a list of warnings: of those that say the same of the same field, the first
// is kept, and says how many objects, or places of its own object, there are more.
func counted(list []Problem) []Problem {
	type saying struct{ kind, path, what, fix string }
	first, objects, places := map[saying]int{}, map[saying]map[int]bool{}, map[saying]int{}
	var out []Problem
	for _, p := range list {
		key := saying{p.kind, anyIndex.ReplaceAllString(p.Path, "[]"), p.What, p.Fix}
		if _, said := first[key]; !said {
			first[key], objects[key] = len(out), map[int]bool{}
			out = append(out, p)
		}
		objects[key][p.object] = true
		places[key]++
	}
	for key, i := range first {
		if more := len(objects[key]) - 1; more > 0 {
			out[i].What += fmt.Sprintf(" (and %d more %s)", more, plural(key.kind, more))
		} else if more := places[key] - 1; more > 0 {
			out[i].What += fmt.Sprintf(" (and %d more %s)", more, plural("place", more))
		}
	}
	return out
}

func plural(word string, n int) string {
	if n == 1 {
		return word
	}
	return word + "s"
}

// place is a position in a source.
type place struct{ line, column int }

// position knows where the fields of one object are.
type position struct {
	file   string
	source int // which source it is of, from 0
	// base is the object's path in its document: empty, or as in "items[3].".
	base   string
	start  place
	places map[string]place // by path below base
}

// fill gives problems their file, line and column, each that of its field or, for
// a field that is not there, of the nearest parent that is.
func (at *position) fill(list []Problem) []Problem {
	for i := range list {
		p := &list[i]
		found := at.find(p.Path)
		p.File, p.Line, p.Column, p.Path = at.file, found.line, found.column, at.base+p.Path
	}
	return list
}

func (at *position) find(path string) place {
	for path != "" {
		if found, ok := at.places[path]; ok {
			return found
		}
		path = parentPath(path)
	}
	return at.start
}

// parentPath cuts the last field, index or key. A key may hold dots: a[b.c/d].
func parentPath(path string) string {
	if strings.HasSuffix(path, "]") {
		return path[:max(strings.LastIndexByte(path, '['), 0)]
	}
	return path[:max(strings.LastIndexByte(path, '.'), 0)]
}
