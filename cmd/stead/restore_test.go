package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// put writes a record behind the server's back.
func (c *cluster) put(key string, record any) {
	c.t.Helper()
	if _, err := c.store.Commit(c.t.Context(), store.Txn{Then: []store.Op{store.Put(key, store.Encode(record))}}); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) restore() (st records.RestoreState) {
	c.t.Helper()
	code, out := c.stead("restore", "--status", "-o", "json")
	if err := json.Unmarshal([]byte(out), &st); err != nil || code != exitDone {
		c.t.Fatalf("code %d, %v: %s", code, err, out)
	}
	return st
}

func TestARestoreIsDeclaredAndWaitsOnOneScreen(t *testing.T) {
	c := newCluster(t, nil)
	if code, out := c.stead("restore", "--status"); code != exitDone || !strings.Contains(out, "was never restored (epoch 1)") {
		t.Errorf("code %d:\n%s", code, out)
	}
	if code, out := c.stead("apply", "-f", "testdata/db.yaml", "--wait", "--timeout", "2m"); code != exitDone {
		t.Fatal(out)
	}
	before := c.tokens()
	c.put(store.KnownKey("server-b"), records.Known{At: spec.Sequence{Epoch: 1, Rev: 9}, Nodes: map[spec.NodeName]spec.UID{"late": "uid-late"}})
	c.put(store.HoldKey, records.Hold{Cause: "it is at revision 7, and revision 9 is known", By: "server server-b", At: time.Now()})
	c.until("the store is held", func() bool { return c.restore().State == records.RestoreHeld })
	c.play("restore.txt")
	c.until("the host that is there is heard, and the other is waited for", func() bool {
		_, out := c.stead("restore", "--status")
		_, all := c.stead("status")
		return strings.Contains(out, "1 of 2 nodes have reported") && strings.Contains(out, "late     Waited") && strings.Contains(all, "1 of 2 nodes have reported")
	})
	if code, out := c.stead("scale", "db", "--replicas", "4"); code != exitDone {
		t.Fatal(out)
	}
	c.until("a member that is new waits for the count", func() bool {
		_, out := c.stead("explain", "db")
		return strings.Contains(out, "until node late has reported what it runs")
	})
	if code, out := c.stead("restore", "--off", "late", "--yes"); code != exitDone || !strings.Contains(out, "may be started a second time on another node") {
		t.Errorf("code %d:\n%s", code, out)
	}
	if code, out := c.stead("wait", "set/db", "--for", "available", "--timeout", "2m"); code != exitDone {
		t.Fatal(out)
	}
	st := c.restore()
	if st.State != records.RestoreComplete || len(st.Nodes) != 2 || st.Nodes[0].State != records.NodeHeard || st.Nodes[1].State != records.NodeExcused {
		t.Errorf("got %+v", st)
	}
	after := c.tokens()
	fourth := after["db-3"]
	delete(after, "db-3")
	if !maps.Equal(after, before) || !strings.HasPrefix(fourth, fmt.Sprintf("%d.", st.Epoch)) {
		t.Errorf("tokens were %v and are %v, db-3 has %s; want that members ran on, and a new one of epoch %d", before, after, fourth, st.Epoch)
	}
}

// tokens are those of the members, by name.
func (c *cluster) tokens() map[string]string {
	c.t.Helper()
	var list struct {
		Items []struct {
			Status records.MemberStatus `json:"status"`
		} `json:"items"`
	}
	code, out := c.stead("get", "members", "-o", "json")
	if err := json.Unmarshal([]byte(out), &list); err != nil || code != exitDone {
		c.t.Fatalf("code %d, %v: %s", code, err, out)
	}
	of := map[string]string{}
	for _, i := range list.Items {
		of[i.Status.Name] = i.Status.Token
	}
	return of
}
