package dispatch

import (
	"testing"

	"github.com/stead-project/stead/records"
)

func TestAReportIsStoredAsPlainText(t *testing.T) {
	r := newRig(t)
	r.begin()
	n := r.connect(n1)
	n.wanted()
	n.report(records.Report{
		ID: ident(0), Token: token(10), Seq: 1, Phase: records.PhaseRunning, Cause: "Not\x1bReady", Message: "\x1b]0;OWNED\a\nforged",
		Containers: []records.ContainerReport{{Name: "main", State: "Running\r", Cause: "\x1b[31m"}},
	})
	n.stored()
	got, ok := r.report(0)
	if !ok || got.Cause != "Not�Ready" || got.Message != "�]0;OWNED� forged" || got.Containers[0].State != "Running�" || got.Containers[0].Cause != "�[31m" {
		t.Errorf("got %+v, %v", got, ok)
	}
}
