package box

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// shape is a set as a user writes it.
type shape struct {
	name     string
	replicas int
	parallel bool
	volumes  bool
	probed   bool   // it is ready when exec in it says so
	pull     string // imagePullPolicy
	grace    int    // terminationGracePeriodSeconds; 0: the default
	// scaled and deleted are what becomes of volumes (Retain when empty), trash how
	// long they then lie in the trash.
	scaled, deleted spec.Retention
	trash           string
	loss            string // nodeLoss
}

const image = "example.local/db:1"

func (s shape) yaml() string {
	b := &strings.Builder{}
	policy := "OrderedReady"
	if s.parallel {
		policy = "Parallel"
	}
	api := "apps/v1"
	if s.trash != "" || s.loss != "" {
		api = "stead/v1"
	}
	fmt.Fprintf(b, "apiVersion: %s\nkind: StatefulSet\nmetadata: {name: %s}\nspec:\n", api, s.name)
	if s.scaled != "" {
		fmt.Fprintf(b, "  persistentVolumeClaimRetentionPolicy: {whenScaled: %s, whenDeleted: %s}\n", s.scaled, s.deleted)
	}
	if s.loss != "" {
		fmt.Fprintf(b, "  nodeLoss: %s\n", s.loss)
	}
	fmt.Fprintf(b, "  replicas: %d\n  podManagementPolicy: %s\n  selector: {matchLabels: {app: %s}}\n", s.replicas, policy, s.name)
	fmt.Fprintf(b, "  template:\n    metadata: {labels: {app: %s}}\n    spec:\n", s.name)
	if s.grace > 0 {
		fmt.Fprintf(b, "      terminationGracePeriodSeconds: %d\n", s.grace)
	}
	fmt.Fprintf(b, "      containers:\n      - name: main\n        image: %s\n", image)
	if s.pull != "" {
		fmt.Fprintf(b, "        imagePullPolicy: %s\n", s.pull)
	}
	if s.probed {
		b.WriteString("        readinessProbe: {exec: {command: [ready]}, periodSeconds: 1}\n")
	}
	if s.volumes {
		b.WriteString("        volumeMounts: [{name: data, mountPath: /data}]\n")
		b.WriteString("  volumeClaimTemplates:\n  - metadata: {name: data}\n    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n")
		if s.trash != "" {
			fmt.Fprintf(b, "    reclaim: {after: %s}\n", s.trash)
		}
	}
	return b.String()
}

func ref(set spec.SetName) spec.SetRef {
	return spec.SetRef{Namespace: spec.DefaultNamespace, Name: set}
}

// member is an identity by its name.
func member(name string) spec.Identity {
	set, ordinal, err := spec.ParseMemberName(name)
	if err != nil {
		panic(err)
	}
	return spec.Identity{Namespace: spec.DefaultNamespace, Set: set, Ordinal: ordinal}
}

// ask calls the current server, and asks again, as a user would, while none answers.
func (c *cluster) ask(f func(context.Context, proto.ControlClient) error) error {
	deadline := time.Now().Add(patience)
	for {
		ctx, cancel := context.WithTimeout(c.t.Context(), 15*time.Second)
		err := f(ctx, c.api())
		cancel()
		switch status.Code(err) {
		case codes.Unavailable, codes.Aborted, codes.DeadlineExceeded, codes.Canceled:
			if time.Now().Before(deadline) {
				time.Sleep(5 * time.Millisecond)
				continue
			}
		}
		return err
	}
}

// must is ask for what has to be granted; codes in fine are as good as success.
func (c *cluster) must(what string, f func(context.Context, proto.ControlClient) error, fine ...codes.Code) {
	c.t.Helper()
	if err := c.ask(f); err != nil && !slices.Contains(fine, status.Code(err)) {
		c.t.Fatalf("%s: %v", what, err)
	}
}

func (c *cluster) apply(s shape) {
	c.t.Helper()
	c.must("apply "+s.name, func(ctx context.Context, api proto.ControlClient) error {
		_, err := api.Apply(ctx, &proto.ApplyRequest{Files: []*proto.File{{Name: "a.yaml", Content: []byte(s.yaml())}}})
		return err
	})
}

func (c *cluster) scale(set string, replicas int) {
	c.t.Helper()
	c.must("scale "+set, func(ctx context.Context, api proto.ControlClient) error {
		_, err := api.Scale(ctx, &proto.ScaleRequest{Name: set, Replicas: int32(replicas)})
		return err
	})
}

// delete removes a set; one that is gone already (by a call whose answer was lost)
// is fine.
func (c *cluster) delete(set string) {
	c.t.Helper()
	c.must("delete "+set, func(ctx context.Context, api proto.ControlClient) error {
		_, err := api.Delete(ctx, &proto.DeleteRequest{Kind: "set", Name: set})
		return err
	}, codes.NotFound)
}

// explain is what the server says about a set or member, one row a line.
func (c *cluster) explain(name string) string {
	c.t.Helper()
	var rows []string
	c.must("explain "+name, func(ctx context.Context, api proto.ControlClient) error {
		out, err := api.Explain(ctx, &proto.ExplainRequest{Name: name})
		rows = nil
		for _, r := range out.GetRows() {
			rows = append(rows, fmt.Sprintf("%s %s: %s", r.GetMember(), r.GetWhat(), r.GetWhy()))
		}
		return err
	}, codes.NotFound)
	return strings.Join(rows, "\n")
}

// loadImage puts an image on a node through the server.
func (c *cluster) loadImage(node spec.NodeName, name string) {
	c.t.Helper()
	c.must("load image", func(ctx context.Context, api proto.ControlClient) error {
		stream, err := api.LoadImage(ctx)
		if err != nil {
			return err
		}
		if err := stream.Send(&proto.LoadImageRequest{Node: string(node), Data: []byte(name)}); err != nil {
			return err
		}
		out, err := stream.CloseAndRecv()
		if err == nil && (len(out.GetImages()) != 1 || out.GetImages()[0].GetName() != name) {
			c.t.Errorf("load image: got %v", out)
		}
		return err
	})
}

// list decodes the part of each object that T names.
func list[T any](c *cluster, kind, set string) []T {
	c.t.Helper()
	var out []T
	c.must("list "+kind, func(ctx context.Context, api proto.ControlClient) error {
		answer, err := api.List(ctx, &proto.ListRequest{Kind: kind, Set: set})
		out = nil
		for _, o := range answer.GetObjects() {
			var v T
			if err := json.Unmarshal(o.GetJson(), &v); err != nil {
				return err
			}
			out = append(out, v)
		}
		return err
	})
	return out
}

// members are the rows of a set's table, by ordinal.
func (c *cluster) members(set string) (rows []records.MemberStatus) {
	c.t.Helper()
	for _, o := range list[struct{ Status records.MemberStatus }](c, "member", set) {
		rows = append(rows, o.Status)
	}
	return rows
}

// find is the row of one member.
func (c *cluster) find(name string) records.MemberStatus {
	c.t.Helper()
	for _, row := range c.members(string(member(name).Set)) {
		if row.Name == name {
			return row
		}
	}
	return records.MemberStatus{}
}

// volumes are the volumes of a set.
func (c *cluster) volumes(set string) (volumes []records.Volume) {
	c.t.Helper()
	for _, o := range list[struct{ Spec records.Volume }](c, "volume", set) {
		volumes = append(volumes, o.Spec)
	}
	return volumes
}

// sets are the names and statuses of all sets.
func (c *cluster) sets() map[string]records.SetStatus {
	c.t.Helper()
	out := map[string]records.SetStatus{}
	for _, o := range list[struct {
		Metadata struct{ Name string }
		Status   records.SetStatus
	}](c, "set", "") {
		out[o.Metadata.Name] = o.Status
	}
	return out
}

// live is the number of nodes with a session.
func (c *cluster) live() (n int) {
	c.t.Helper()
	for _, o := range list[struct{ Status struct{ State string } }](c, "node", "") {
		if o.Status.State == "Ready" {
			n++
		}
	}
	return n
}

// ready waits until exactly n members are there and all of them are ready.
func (c *cluster) ready(set string, n int) {
	c.t.Helper()
	c.until(fmt.Sprintf("%d members of %s are ready", n, set), func() bool {
		rows := c.members(set)
		return len(rows) == n && !slices.ContainsFunc(rows, func(r records.MemberStatus) bool { return !r.Ready })
	})
}

// gone waits until a set is no more.
func (c *cluster) gone(set string) {
	c.t.Helper()
	c.until(set+" is gone", func() bool { _, there := c.sets()[set]; return !there })
}

// describe is the cluster in words, for a test that fails.
func (c *cluster) describe() string {
	b := &strings.Builder{}
	for set, st := range c.sets() {
		fmt.Fprintf(b, "set %s: %+v\n", set, st)
		for _, m := range c.members(set) {
			fmt.Fprintf(b, "  %+v\n", m)
		}
		fmt.Fprintf(b, "  explain:\n%s\n", c.explain(set))
	}
	for _, s := range c.audit.starts() {
		fmt.Fprintf(b, "  started on %s: %s %s %d, runs now: %v\n", s.Node, s.ID, s.Token, s.Attempt, c.audit.running(s.ID))
	}
	return b.String()
}
