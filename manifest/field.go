package manifest

import (
	"reflect"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// field is one field of a manifest's type, as its tags declare it (see the
// package's comment).
type field struct {
	index   int
	name    string
	typ     reflect.Type
	later   bool
	ignored bool
	only    bool
	zero    bool     // an empty value is accepted without a word
	or      string   // with later: this one value is accepted
	same    []string // values that say what Stead does anyway; "key:value" is a mapping
	instead string   // what to write instead, or why it has no effect
}

// fieldsOf lists the fields of a struct type in their order.
func fieldsOf(t reflect.Type) []field {
	fields := make([]field, 0, t.NumField())
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		out := field{index: i, name: name, typ: f.Type, instead: instead[t.Name()+"."+name]}
		for word := range strings.SplitSeq(f.Tag.Get("stead"), ",") {
			switch word {
			case "later":
				out.later = true
			case "ignored":
				out.ignored = true
			case "only":
				out.only = true
			case "zero":
				out.zero = true
			default:
				if value, ok := strings.CutPrefix(word, "or="); ok {
					out.or = value
				}
				if values, ok := strings.CutPrefix(word, "same="); ok {
					out.same = strings.Split(values, "|")
				}
			}
		}
		fields = append(fields, out)
	}
	return fields
}

// saysSame reports whether n says what Stead does anyway.
func (f *field) saysSame(n *yaml.Node) bool {
	return f.zero && isEmpty(n) || slices.ContainsFunc(f.same, func(same string) bool {
		key, value, mapped := strings.Cut(same, ":")
		if !mapped {
			return n.Kind == yaml.ScalarNode && n.Value == same
		}
		return n.Kind == yaml.MappingNode && len(n.Content) == 2 && scalarText(n.Content[0]) == key && scalarText(n.Content[1]) == value
	})
}

// suggest finds the field that the writer of name most likely meant, or "".
func suggest(name string, fields []field) string {
	best, least := "", min(2, len(name)/2)+1
	for _, f := range fields {
		if strings.EqualFold(f.name, name) {
			return f.name
		}
		if n := distance(name, f.name); n < least {
			best, least = f.name, n
		}
	}
	return best
}

// distance counts the letters to insert, remove, change or swap with their
// neighbour to make b of a. Long words are far from everything.
func distance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return 64
	}
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row := make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			change := last[j]
			if a[i] != b[j] {
				change++
			}
			row[j+1] = min(change, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}

// fieldNames are the names for a message, or "" when there are too many.
func fieldNames(fields []field) string {
	const most = 8
	names := make([]string, 0, len(fields))
	for _, f := range fields {
		if !f.later && !f.ignored {
			names = append(names, f.name)
		}
	}
	if len(names) > most {
		return ""
	}
	slices.Sort(names)
	return "known here: " + strings.Join(names, ", ")
}
