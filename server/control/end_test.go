package control

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/store"
)

// TestAStoreThatWasEndedGoesOnOnlyWhereItWasCopied: nothing is changed in it, whoever starts its servers again, and only the copy, which has
// another name, is taken for a restored one.
func TestAStoreThatWasEndedGoesOnOnlyWhereItWasCopied(t *testing.T) {
	r := newRig(t)
	origin := "old"
	r.shared.cfg.Origin = func() string { return origin }
	r.host("a", 1, true)
	finish := func(dry bool) error {
		_, err := r.api.End(r.ctx, &proto.EndRequest{DryRun: dry})
		return err
	}
	for _, dry := range []bool{true, false, false} { // once more is no error
		if err := finish(dry); err != nil {
			t.Fatal(err)
		}
	}
	if st := r.state(); st.State != records.RestoreHeld || !strings.Contains(st.Next, "stead restore --ended") {
		t.Errorf("the state is %+v", st)
	}
	err := r.shared.commit(r.ctx, "something", store.Txn{Then: []store.Op{store.Put("x", nil)}})
	if err == nil || !strings.Contains(err.Error(), "it continues in another store") {
		t.Errorf("a change of it: %v", err)
	}
	refused(t, r.restore(), codes.FailedPrecondition, "has ended this store")
	origin = "" // not known yet
	refused(t, r.restore(), codes.FailedPrecondition, "has ended this store")

	origin = "the copy"
	if st := r.state(); strings.Contains(st.Next, "--ended") {
		t.Errorf("the state of the copy is %+v", st)
	}
	refused(t, finish(false), codes.FailedPrecondition, "it continues in another store")
	restore := func(ended bool) error {
		_, err := r.api.Restore(r.ctx, &proto.RestoreRequest{Ended: ended, DryRun: origin == "the copy"})
		return err
	}
	refused(t, restore(true), codes.FailedPrecondition, "was not ended")
	if err := restore(false); err != nil {
		t.Errorf("the copy goes on: %v", err)
	}
	origin = "old"
	if err := restore(true); err != nil {
		t.Errorf("a person says that there is no copy: %v", err)
	}
	refused(t, finish(false), codes.FailedPrecondition, "a restore is in progress") // its restore is in progress
	origin = ""
	refused(t, finish(false), codes.FailedPrecondition, "does not say which one it is")
}
