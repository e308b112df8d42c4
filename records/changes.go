package records

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stead-project/stead/spec/scalar"
)

// Changes tells how b differs from a, one field a line in the order of their paths:
// "spec.replicas 3 → 5". Both are records of one type, as stored. most bounds the lines
// (0: no bound); the last says how many more there are.
func Changes(root string, a, b any, most int) []string {
	before, after := map[string]string{}, map[string]string{}
	flatten(root, generic(a), before)
	flatten(root, generic(b), after)
	paths := maps.Clone(before)
	maps.Copy(paths, after)
	var out []string
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		if was, is := before[path], after[path]; was != is {
			out = append(out, fmt.Sprintf("%s %s → %s", path, orAbsent(was), orAbsent(is)))
		}
	}
	if most > 0 && len(out) > most {
		out = append(out[:most:most], fmt.Sprintf("and %d more", len(out)-most))
	}
	return out
}

func orAbsent(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

// generic is v as JSON has it; nil where it cannot be encoded, which no record is.
func generic(v any) (out any) {
	if doc, err := json.Marshal(v); err == nil {
		d := json.NewDecoder(bytes.NewReader(doc))
		d.UseNumber()
		_ = d.Decode(&out) // what was encoded can be decoded
	}
	return out
}

// flatten puts each value that holds no others into out, by its path.
func flatten(path string, v any, out map[string]string) {
	switch v := v.(type) {
	case map[string]any:
		for key, inner := range v {
			if strings.ContainsAny(key, "./") {
				flatten(fmt.Sprintf("%s[%s]", path, key), inner, out)
			} else {
				flatten(path+"."+key, inner, out)
			}
		}
	case []any:
		for i, inner := range v {
			flatten(fmt.Sprintf("%s[%d]", path, i), inner, out)
		}
	case nil:
	case string:
		out[path] = scalar.Quote(v)
	default:
		out[path] = fmt.Sprint(v)
	}
}
