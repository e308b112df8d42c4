package control

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// hookYAML is setYAML with a hook, which agents of level 1 pass over.
var hookYAML = strings.Replace(setYAML, "- name: main\n", "- name: main\n        lifecycle: {preStop: {sleep: {seconds: 1}}}\n", 1)

// leveled stores a node whose agent has a level.
func (r *rig) leveled(name spec.NodeName, level int) {
	r.t.Helper()
	r.Record(store.NodeKey(name), records.Node{Name: name, UID: "u-" + spec.UID(name)})
	r.Record(store.FactsKey(name), records.NodeFacts{Name: name, UID: "u-" + spec.UID(name), Level: level})
}

func TestAFieldThatAgentsWouldPassOverIsRefused(t *testing.T) {
	const field, fix = "spec.template.spec.containers[0].lifecycle", "upgrade stead on the hosts, and apply it again"
	t.Run("of a new set, when no agent knows it", func(t *testing.T) {
		r := newRig(t)
		r.leveled("n1", 0)
		r.leveled("n2", 1)
		_, err := r.apply(hookYAML)
		refused(t, err, codes.FailedPrecondition, "a.yaml:", field, "an agent that is too old for it runs on n1, n2", fix)
		r.mustApply(setYAML)
	})
	t.Run("of a new set one is enough, and before any has connected nobody knows", func(t *testing.T) {
		newRig(t).mustApply(hookYAML)
		r := newRig(t)
		r.leveled("n1", 1)
		r.leveled("n2", spec.Level)
		r.mustApply(hookYAML)
	})
	t.Run("of a set with a member on such a node", func(t *testing.T) {
		r := newRig(t)
		r.leveled("n1", 1)
		r.leveled("n2", spec.Level)
		r.mustApply(setYAML)
		r.live(0, true)
		_, err := r.apply(hookYAML)
		refused(t, err, codes.FailedPrecondition, field, "runs on n1", fix)
		r.leveled("n1", spec.Level)
		r.mustApply(hookYAML)
		r.leveled("n1", 1) // whatever became of the node, the set can be changed
		r.mustApply(strings.Replace(hookYAML, "replicas: 3", "replicas: 4", 1))
	})
}
