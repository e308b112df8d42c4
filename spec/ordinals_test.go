package spec

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"
)

func TestTheRangeSkipsReservedOrdinals(t *testing.T) {
	for _, c := range []struct {
		name     string
		start    int32
		reserved string
		members  int
		want     string
	}{
		{"none", 0, `[]`, 3, "[0 1 2]"},
		{"from a start", 5, `[]`, 2, "[5 6]"},
		{"one in the middle", 0, `[1]`, 3, "[0 2 3]"},
		{"the first", 0, `[0]`, 2, "[1 2]"},
		{"a run", 0, `["1-3"]`, 2, "[0 4]"},
		{"one that the end moves over", 0, `[1, 3]`, 3, "[0 2 4]"},
		{"one beyond the end", 0, `[3]`, 3, "[0 1 2]"},
		{"ones below the start", 5, `["0-5"]`, 2, "[6 7]"},
		{"overlapping and unsorted", 0, `["4-5", "1-2", 2, "2-4"]`, 2, "[0 6]"},
		{"one within another", 0, `["1-5", 3]`, 2, "[0 6]"},
		{"nobody", 0, `[0]`, 0, "[]"},
	} {
		o := &Ordinals{Start: c.start}
		if err := json.Unmarshal([]byte(c.reserved), &o.Reserved); err != nil {
			t.Fatal(err)
		}
		r, got := o.Range(c.members), []int{}
		for n := range 20 {
			if r.Has(n) {
				got = append(got, n)
			}
		}
		if fmt.Sprint(got) != c.want || c.members > 0 && r.End != got[len(got)-1]+1 {
			t.Errorf("%s: got %v, end %d; want %s", c.name, got, r.End, c.want)
		}
	}
	if got := (&Ordinals{Start: 1, Reserved: []OrdinalSpan{{2, 3}}}).Range(3).All(); fmt.Sprint(got) != "[1 4 5]" {
		t.Errorf("all of them: %v", got)
	}
	var none *Ordinals
	if r := none.Range(2); !r.Has(0) || !r.Has(1) || r.Has(2) || r.Has(-1) {
		t.Errorf("got %+v; want 0 and 1", r)
	}
	if r := (&Ordinals{Start: 2, Reserved: []OrdinalSpan{{0, 3}, {5, 6}, {7, 7}, {1000, math.MaxInt32 - 9}}}).Range(3); fmt.Sprint(r.Next(0), r.Next(4), r.Next(5), r.Next(9), r.End) != "4 4 8 9 10" {
		t.Errorf("next of 0, 4, 5, 9 and the end: %v", fmt.Sprint(r.Next(0), r.Next(4), r.Next(5), r.Next(9), r.End))
	}
	if r := (&Ordinals{Reserved: []OrdinalSpan{{0, math.MaxInt32}}}).Range(1); r.Fits() {
		t.Errorf("%+v fits; want no room", r)
	}
}

func TestASpanIsReadAndWritten(t *testing.T) {
	for in, want := range map[string]string{
		`3`: `3`, `"3"`: `3`, `"5-7"`: `"5-7"`, `"7-7"`: `7`,
		`"7-5"`: "", `"a"`: "", `-1`: "", `true`: "", `"-"`: "", `"1-2-3"`: "", `99999999999`: "", `1.5`: "",
	} {
		var s OrdinalSpan
		err := json.Unmarshal([]byte(in), &s)
		out, _ := json.Marshal(s)
		if want == "" && err == nil || want != "" && (err != nil || string(out) != want) {
			t.Errorf("%s: got %s, %v; want %q", in, out, err, want)
		}
	}
}
