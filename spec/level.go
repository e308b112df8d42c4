package spec

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Level is the newest level of templates that this version carries out. A field that agents of the
// level before would pass over without a word has the level that it came with in its tag,
// since=N; except=A|B are values that every agent takes. The first such field after a release
// raises Level. What was there before the first release that has levels is level 1.
const Level = 3

// Needs is the level that an agent must have to carry out s, and the path in s of the first field that
// asks for it: "containers[0].lifecycle". It is 1, and the path "", when every agent will do.
func (s *MemberSpec) Needs() (level int, field string) {
	level, field = newest(reflect.ValueOf(s).Elem())
	if pages := s.hugePagesField(); pages != "" && level < hugePagesLevel {
		return hugePagesLevel, pages
	}
	return max(level, 1), strings.TrimPrefix(field, ".")
}

// leveled is a field of a struct that has a level, or something in it that has one.
type leveled struct {
	index  int
	name   string
	since  int // 0: see what is in it
	except []string
}

// leveledFields are those of each struct type, found once.
var leveledFields sync.Map // of reflect.Type to []leveled

// newest is what Needs says of a value; each name in the path has a dot before it.
func newest(v reflect.Value) (level int, path string) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			return newest(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			if l, p := newest(v.Index(i)); l > level {
				level, path = l, indexed(i)+p
			}
		}
	case reflect.Struct:
		fields := leveledOf(v.Type())
		for i := range fields {
			f := &fields[i] // where it is: nothing is allocated for a template that needs nothing
			l, inner := f.newest(v.Field(f.index))
			if l <= level {
				continue
			}
			level, path = l, "."+f.name+inner
		}
	}
	return level, path
}

func indexed(i int) string { return "[" + strconv.Itoa(i) + "]" }

func (f *leveled) newest(v reflect.Value) (level int, inner string) {
	switch {
	case f.since == 0:
		return newest(v)
	case v.IsZero(), v.Kind() == reflect.Slice && v.Len() == 0:
		return 0, ""
	case v.Kind() == reflect.String && slices.Contains(f.except, v.String()),
		v.Kind() == reflect.Pointer && len(f.except) > 0 && slices.Contains(f.except, fmt.Sprint(v.Elem())):
		return 0, ""
	}
	return f.since, ""
}

// leveledOf lists them for a struct type. Types of templates contain none that contain themselves.
func leveledOf(t reflect.Type) []leveled {
	if known, ok := leveledFields.Load(t); ok {
		return known.([]leveled)
	}
	var out []leveled
	for i := range t.NumField() {
		f := t.Field(i)
		l := leveled{index: i}
		l.name, _, _ = strings.Cut(f.Tag.Get("json"), ",")
		for word := range strings.SplitSeq(f.Tag.Get("stead"), ",") {
			if n, ok := strings.CutPrefix(word, "since="); ok {
				l.since, _ = strconv.Atoi(n) // a number: TestLevels
			}
			if values, ok := strings.CutPrefix(word, "except="); ok {
				l.except = strings.Split(values, "|")
			}
		}
		if l.since > 0 || hasLevels(f.Type) {
			out = append(out, l)
		}
	}
	leveledFields.Store(t, out)
	return out
}

func hasLevels(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		return hasLevels(t.Elem())
	case reflect.Struct:
		return len(leveledOf(t)) > 0
	}
	return false
}
