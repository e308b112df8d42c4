package session

import (
	"testing"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

var (
	db0 = spec.Identity{Namespace: "default", Set: "db", Ordinal: 0}
	ref = db0.Ref()
)

func tok(n int64) spec.Token { return spec.Token{Epoch: 1, Number: n} }

func picture(rev int64, replicas int) records.Snapshot {
	return records.Snapshot{Sequence: spec.Sequence{Epoch: 1, Rev: rev}, Ref: ref, Replicas: replicas}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
