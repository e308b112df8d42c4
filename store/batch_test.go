package store

import (
	"bytes"
	"fmt"
	"reflect"
	"testing"
)

// unit writes key and compares that it is absent.
func unit(key string) Txn {
	return Txn{If: []Compare{Absent(key)}, Then: []Op{Put(key, nil)}}
}

func units(n int) []Txn {
	var out []Txn
	for i := range n {
		out = append(out, unit(fmt.Sprintf("k/%d", i)))
	}
	return out
}

func TestSplit(t *testing.T) {
	shared := []Compare{Created(LeaderKey, 7), Seen(EpochKey, 2)}
	big := Txn{Then: []Op{Put("big", bytes.Repeat([]byte("x"), MaxBytes-100))}}
	wide := Txn{}
	for i := range MaxOps + 1 {
		wide.Then = append(wide.Then, Put(fmt.Sprint(i), nil))
	}
	var sameCompare []Txn
	for i := range MaxOps {
		sameCompare = append(sameCompare, Txn{If: []Compare{Seen("node", 3)}, Then: []Op{Put(fmt.Sprint(i), nil)}})
	}
	for _, c := range []struct {
		name   string
		shared []Compare
		units  []Txn
		want   []int // sizes
	}{
		{"nothing is no transaction", shared, nil, nil},
		{"few units stand in one", shared, units(5), []int{5}},
		{"shared compares take their room", shared, units(2 * MaxOps), []int{MaxOps - 2, MaxOps - 2, 4}},
		{"without shared compares all room is the units'", nil, units(2 * MaxOps), []int{MaxOps, MaxOps}},
		{"a compare that many have counts once", nil, sameCompare, []int{MaxOps}},
		{"writers of one key stand apart", nil, []Txn{unit("a"), unit("b"), unit("a")}, []int{2, 1}},
		{"a unit stands apart from the writer before it of a key that it compares", nil,
			[]Txn{{Then: []Op{Put("a", nil)}}, {If: []Compare{Seen("a", 3)}, Then: []Op{Put("b", nil)}}}, []int{1, 1}},
		{"a unit may write what one before it compares", nil,
			[]Txn{{If: []Compare{Seen("a", 3)}, Then: []Op{Put("b", nil)}}, {Then: []Op{Put("a", nil)}}}, []int{2}},
		{"a transaction has a limit of bytes", nil, []Txn{unit("a"), big, unit("b"), {Then: []Op{Put("c", make([]byte, 200))}}}, []int{3, 1}},
		{"a unit that is too large is alone", nil, []Txn{unit("a"), wide, unit("b")}, []int{1, 1, 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			groups := split(c.shared, c.units)
			var got []int
			next := 0
			for _, group := range groups {
				got = append(got, len(group))
				for _, i := range group {
					if i != next {
						t.Fatalf("groups %v do not keep the order", groups)
					}
					next++
				}
				txn := join(c.shared, c.units, group)
				if err := txn.Check(); err != nil && len(group) > 1 {
					t.Errorf("a group of %d is no valid transaction: %v", len(group), err)
				}
			}
			if !reflect.DeepEqual(got, c.want) || next != len(c.units) {
				t.Errorf("got sizes %v of %d units, want %v of %d", got, next, c.want, len(c.units))
			}
		})
	}
}

func TestCheckNamesWhatIsWrong(t *testing.T) {
	for _, c := range []struct {
		txn  Txn
		want string
	}{
		{Txn{Then: []Op{Put("a", nil), Del("a")}}, "check operations: key a appears twice"},
		{Txn{Then: []Op{Del("")}}, "check operations: empty key"},
		{Txn{If: []Compare{Absent("")}}, "check compares: empty key"},
		{Txn{Then: []Op{Put("a", make([]byte, MaxBytes))}}, "check 1300001 bytes of at most 1300000: transaction is too large"},
	} {
		if err := c.txn.Check(); err == nil || err.Error() != c.want {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
}
