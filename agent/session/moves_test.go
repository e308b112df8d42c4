package session

import (
	"reflect"
	"testing"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/proto/wire"
	"github.com/stead-project/stead/records/moves"
)

func TestWhatIsSaidOfMovesIsSaidOnceForEachChange(t *testing.T) {
	notified := 0
	r := NewMoveReports(func() { notified++ })
	says := func(want ...moves.MoveReport) {
		t.Helper()
		m, err := r.changed()
		if err != nil || m == nil {
			t.Fatalf("%v, %v", m, err)
		}
		got, err := wire.ToDocuments[moves.MoveReport](m.GetMoves().GetReportsJson())
		if err != nil || len(got) != len(want) || len(got) > 0 && !reflect.DeepEqual(got, want) {
			t.Fatalf("said is %+v, %v", got, err)
		}
		if m, err := r.changed(); m != nil || err != nil {
			t.Errorf("said again: %v, %v", m, err)
		}
	}
	one := moves.MoveReport{Move: "a", Role: moves.MoveSource, State: moves.MoveSealed, Sums: []moves.MoveSum{{Claim: "data", Sum: "1"}}}
	r.Set([]moves.MoveReport{one})
	says(one)
	other := one
	other.Sums = []moves.MoveSum{{Claim: "data", Sum: "2"}}
	r.Set([]moves.MoveReport{other})
	says(other)
	if got := r.all(); len(got) != 1 { // for the next session's hello
		t.Errorf("%+v", got)
	}
	r.Set(nil)
	says()
	var none *MoveReports
	if m, err := none.changed(); m != nil || err != nil || none.all() != nil {
		t.Errorf("%v, %v", m, err)
	}
	if notified != 3 {
		t.Errorf("notified %d times", notified)
	}
}

// A list that says nothing of moves orders nothing; one that names none says that there are none.
func TestOrdersOfMovesAreTakenAsTheyAreSent(t *testing.T) {
	var took [][]moves.MoveOrder
	c := &Client{cfg: Config{TakeMoves: func(o []moves.MoveOrder, epoch int64) {
		if epoch != 7 {
			t.Errorf("epoch %d", epoch)
		}
		took = append(took, o)
	}}}
	c.takeMoves(nil, 7)
	c.takeMoves(&proto.MoveOrders{}, 7)
	docs, err := wire.Documents([]moves.MoveOrder{{Move: "a"}})
	if err != nil {
		t.Fatal(err)
	}
	c.takeMoves(&proto.MoveOrders{OrdersJson: docs}, 7)
	if len(took) != 2 || len(took[0]) != 0 || len(took[1]) != 1 || took[1][0].Move != "a" {
		t.Errorf("took %+v", took)
	}
}
