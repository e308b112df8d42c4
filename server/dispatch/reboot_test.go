package dispatch

import (
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// After a reboot of a host with server and agent the lease of the session before begins anew with the store, and
// nobody can have that session (SAFETY S9).
func TestAfterARebootTheServersOwnHostHasASessionAtOnce(t *testing.T) {
	for name, c := range map[string]struct {
		boot      spec.BootID // of the server
		of        string      // the server of the session before
		connected bool
		accepted  bool
	}{
		"the host has rebooted":                  {boot: "b2", of: "s1", accepted: true},
		"the agent before is still there":        {boot: "b2", of: "s1", connected: true},
		"it was a session of another server":     {boot: "b2", of: "s2"},
		"the agent runs on another host":         {boot: "b7", of: "s1"},
		"the server does not know its host":      {of: "s1"},
		"the server is in the boot that is over": {boot: "b1", of: "s1"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.server.cfg.Boot, r.server.cfg.Name = c.boot, c.of
			first := r.connect(n1)
			first.welcome()
			if !c.connected {
				first.cancel()
				r.until("the agent is away", func() bool { return !r.server.connected("n1") })
			}
			r.server.cfg.Name = "s1"
			again := n1
			again.boot = "b2"
			_, _, err := r.server.join(t.Context(), again.message())
			if !c.accepted {
				if status.Code(err) != codes.FailedPrecondition {
					t.Fatalf("got %v, want FAILED_PRECONDITION", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			kv, _ := r.Get(store.SessionKey("n1"))
			if se, err := store.Decode[records.Session](kv); err != nil || se.Boot != "b2" || se.Resumed {
				t.Errorf("the session is %+v, %v", se, err)
			}
			if _, _, err := r.server.join(t.Context(), n1.message()); status.Code(err) != codes.FailedPrecondition {
				t.Errorf("the boot before is let in again: %v", err)
			}
		})
	}
}
