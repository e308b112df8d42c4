package wire

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// What a member reads of the past is the same for all, byte by byte, however it came to its node.
func TestAHistoryOnTheWireIsTheSame(t *testing.T) {
	at := time.Date(2026, 11, 23, 11, 0, 0, 123456789, time.UTC)
	h := records.History{Ref: spec.SetRef{Namespace: "ns", Name: "db"}, Changes: []records.Change{
		{Epoch: 1, Number: 7, Kind: records.ChangeReady, Member: "db-3", Ordinal: 3, Token: "1.2", Reason: "Started", Revision: "r1", Replicas: 5, At: at},
		{Epoch: 2, Number: 1, Kind: records.ChangeReplicas, Ordinal: records.NoOrdinal, Replicas: 2, At: at.In(time.FixedZone("", 3600))},
		{Epoch: 2, Number: 2, Kind: records.ChangeLeft, Member: "another-3", Ordinal: 3},
		{Epoch: 2, Number: 3, Kind: records.ChangeJoined, Member: "db-0", At: at.Local()},
	}}
	doc, err := SetHistory(&h)
	if err != nil {
		t.Fatal(err)
	}
	got, err := ToHistories([][]byte{doc})
	if err != nil || len(got) != 1 {
		t.Fatal(got, err)
	}
	a, _ := json.Marshal(h)
	b, _ := json.Marshal(got[0])
	if string(a) != string(b) {
		t.Errorf("sent\n%s\ngot\n%s", a, b)
	}
	if len(doc)*2 > len(a) {
		t.Errorf("%d bytes on the wire, %d in JSON", len(doc), len(a))
	}
	for _, bad := range []string{"\xff", string(doc[:len(doc)-3])} {
		if _, err := ToHistories([][]byte{[]byte(bad)}); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}
