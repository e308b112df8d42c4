package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
)

// sortBy sorts objects by the values at a path of their documents: those without it first,
// numbers by value, text with the numbers in it by value (db-2 before db-10), as kubectl does.
func (p *printer) sortBy(path string, objects []*proto.Object) error {
	template, err := onePath(path)
	if err != nil {
		return misuse("--sort-by: %w", err)
	}
	values, found := map[*proto.Object]any{}, len(objects) == 0
	for _, o := range objects {
		raw, err := p.document(o)
		if err != nil {
			return err
		}
		doc, err := readDocument(raw)
		if err != nil {
			return err
		}
		if values[o], err = find(template, doc); err != nil {
			return err
		}
		found = found || values[o] != nil
	}
	if !found {
		return fmt.Errorf("--sort-by: no %s has a value at %s; see the fields with -o yaml", p.kind, path)
	}
	slices.SortStableFunc(objects, func(a, b *proto.Object) int { return compareValues(values[a], values[b]) })
	return nil
}

// compareValues orders what documents hold: nothing, numbers, then the rest by its text.
func compareValues(a, b any) int {
	x, xNumber := number(a)
	y, yNumber := number(b)
	switch {
	case a == nil || b == nil:
		return cmp.Compare(rank(a), rank(b))
	case xNumber && yNumber:
		return cmp.Compare(x, y)
	}
	return compareNatural(fmt.Sprint(a), fmt.Sprint(b))
}

func rank(v any) int {
	if v == nil {
		return 0
	}
	return 1
}

func number(v any) (float64, bool) {
	switch v := v.(type) {
	case int64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

// compareNatural compares text; digits that follow each other count as a number.
func compareNatural(a, b string) int {
	for a != "" && b != "" {
		x, y := digits(a), digits(b)
		if x > 0 && y > 0 {
			m, n := strings.TrimLeft(a[:x], "0"), strings.TrimLeft(b[:y], "0")
			if c := cmp.Or(cmp.Compare(len(m), len(n)), cmp.Compare(m, n)); c != 0 {
				return c
			}
			a, b = a[x:], b[y:]
			continue
		}
		if a[0] != b[0] {
			return cmp.Compare(a[0], b[0])
		}
		a, b = a[1:], b[1:]
	}
	return cmp.Compare(len(a), len(b))
}

// digits is the number of digits that text starts with.
func digits(text string) int {
	return len(text) - len(strings.TrimLeft(text, "0123456789"))
}

// sortByAge puts the oldest events first; those that cannot be read stay where they are.
func sortByAge(objects []*proto.Object) {
	at := func(o *proto.Object) time.Time {
		e, err := decode[records.Event, any](o)
		if err != nil {
			return time.Time{}
		}
		return e.Spec.At
	}
	slices.SortStableFunc(objects, func(a, b *proto.Object) int { return at(a).Compare(at(b)) })
}
