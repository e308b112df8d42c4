package box

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/stead-project/stead/dnsd"
	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// names looks db and its members up in each picture that a node's DNS ever had.
type names struct {
	asked                  int
	former, present, wrong []string // of the last picture; what was missing in any
}

// see asks for every member that has an address by both names. While the rename goes on
// both are there; the former alone before, and the present alone after.
func (n *names) see(pictures []records.Snapshot) {
	for _, p := range pictures {
		if p.Ref != ref("db") || p.Gone || p.Brief {
			continue
		}
		n.asked++
		zone := dnsd.Build(dnsd.Snapshot{Pictures: []records.Snapshot{p}})
		found := func(name string) bool {
			m := zone.Answer(new(dns.Msg).SetQuestion(name+".default.svc.cluster.local.", dns.TypeA), dnsd.UDP)
			return m.Rcode == dns.RcodeSuccess
		}
		n.former, n.present = nil, nil
		for _, peer := range p.Peers {
			if found(peer.Name + ".db") {
				n.former = append(n.former, peer.Name)
			}
			if found(peer.Name + ".dbs") {
				n.present = append(n.present, peer.Name)
			}
			if own := strings.TrimSuffix(peer.FQDN, ".default.svc.cluster.local"); !found(own) {
				n.wrong = append(n.wrong, fmt.Sprintf("%s, as %s itself knows it, at %+v", own, peer.Name, p))
			}
		}
		all := len(p.Peers)
		former, present := len(n.former) == all && found("db"), len(n.present) == all && found("dbs")
		if !former && !present || p.Former != "" && !(former && present) {
			n.wrong = append(n.wrong, fmt.Sprintf("not all have a name at %+v", p))
		}
	}
}

// A set's governing service is renamed: its members restart one after the other, the
// server dies in between, and at no moment does DNS on any node lack a name by which a
// member that runs knows itself or another; when all ran anew the former names go.
func TestARenameLeavesNoMomentWithoutANameForEveryone(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		c := newCluster(t, inMemory(t), "a", "b")
		seen := map[spec.NodeName]*names{}
		for name, n := range c.nodes {
			seen[name] = &names{}
			n.watchPictures(seen[name].see)
		}
		c.written(shape{name: "db", replicas: 3}, 1)
		c.until("the set is complete", func() bool { return c.on(3) })
		first := c.sets()["db"].CurrentRevision
		text := strings.Replace(shape{name: "db", replicas: 3}.yaml(), "spec:\n  replicas", "spec:\n  serviceName: dbs\n  replicas", 1)
		c.must("rename the service of db", func(ctx context.Context, api proto.ControlClient) error {
			_, err := api.Apply(ctx, &proto.ApplyRequest{RenameService: true, Files: []*proto.File{{Name: "a.yaml", Content: []byte(text)}}})
			return err
		})
		c.until("one has the new name", func() bool { return c.find("db-2").Revision != first })
		c.current().crash()
		c.startServer()
		c.until("all run anew", func() bool { return c.on(3, first) && c.sets()["db"].ServiceName == "dbs" })
		c.until("the former name is gone on every node", func() bool {
			done := true
			for name, n := range c.nodes {
				n.mu.Lock()
				done = done && len(seen[name].former) == 0 && len(seen[name].present) == 3
				n.mu.Unlock()
			}
			return done
		})
		for name, n := range c.nodes {
			n.mu.Lock()
			if s := seen[name]; s.asked == 0 || len(s.wrong) > 0 {
				t.Errorf("node %s, in %d pictures: %s", name, s.asked, strings.Join(s.wrong, "\n"))
			}
			n.mu.Unlock()
		}
		for i := range 3 {
			id := fmt.Sprintf("db-%d", i)
			got, ok := c.host(id).host.Container(process(id))
			if !ok || !strings.Contains(strings.Join(got.Env, "\n"), "STEAD_FQDN="+id+".dbs.default.svc.cluster.local") {
				t.Errorf("%s runs with %q; want that it knows its new name", id, got.Env)
			}
		}
	})
}
