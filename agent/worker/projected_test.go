package worker

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stead-project/stead/agent/files"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// A change of one source of a projected volume is shown in the place of the files before it, and
// starts nobody anew, as in Kubernetes.
func TestAProjectedVolumeFollowsItsSources(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		projected := func(l *records.Life) {
			l.Template.Spec.Volumes = append(l.Template.Spec.Volumes, spec.VolumeMedia{Name: "all", Projected: &spec.ProjectedVolume{Sources: []spec.Projection{
				{DownwardAPI: &spec.DownwardAPIProjection{Items: []spec.DownwardAPIFile{{Path: "name", FieldRef: &spec.FieldRef{FieldPath: "metadata.name"}}}}},
				{ConfigMap: &spec.ObjectProjection{Name: "etc"}},
			}}})
		}
		dir := filepath.Join(files.At(filepath.Join(n.dir, "run-b1"), db0).Media, "all")
		want := func(name, text string) {
			t.Helper()
			got, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil || string(got) != text {
				t.Errorf("%s: got %q, %v, want %q", name, got, err, text)
			}
		}
		n.run()
		n.w.Tell(with(life(5, records.GoalRun), projected))
		time.Sleep(time.Minute)
		n.wantLast("it waits", func(r records.Report) bool { return r.Cause == "ConfigMissing" })
		n.apply("one")
		time.Sleep(time.Minute)
		n.wantReady()
		want("run.sh", "one")
		want("name", "db-0")
		n.apply("two")
		time.Sleep(time.Minute)
		want("run.sh", "two")
		want("name", "db-0")
		n.wantStarts(tok(5), 1)
		n.apply("")
		time.Sleep(time.Minute)
		n.wantLast("what is gone is named", func(r records.Report) bool { return r.Ready && r.Cause == "ConfigGone" })
		want("run.sh", "two")
	})
}
