package control

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// sysctlYAML is setYAML with a kernel parameter.
func sysctlYAML(name string) string {
	return strings.Replace(setYAML, "containers:", "securityContext: {sysctls: [{name: "+name+", value: '1'}]}\n      containers:", 1)
}

// TestWhatTheOperatorDoesNotAllowIsRefused: also by a server that was started again without the
// flag, when an earlier revision would bring it back.
func TestWhatTheOperatorDoesNotAllowIsRefused(t *testing.T) {
	r := newRig(t)
	r.running()
	_, err := r.apply(sysctlYAML("net.core.somaxconn"))
	refused(t, err, codes.InvalidArgument, "a.yaml:", "securityContext.sysctls[0].name", "--allow-sysctl net.core.somaxconn")
	r.shared.cfg.Host = spec.HostAccess{Sysctls: []string{"net.core.*"}}
	r.mustApply(sysctlYAML("net.core.somaxconn"))
	s, _ := r.set("db")
	if got := s.Spec.Template.Spec.SecurityContext.Sysctls; len(got) != 1 || got[0].Key() != "net.core.somaxconn" {
		t.Fatalf("got %v", got)
	}
	hash := spec.HashTemplate(s.Template())
	r.Record(store.RevisionKey(s.Ref, hash), records.Revision{Ref: s.Ref, Hash: hash, HashVersion: spec.HashVersion, Number: 2, Template: s.Template()})
	r.mustApply(setYAML)
	r.shared.cfg.Host = spec.HostAccess{}
	_, err = r.api.Undo(r.ctx, &proto.UndoRequest{Name: "db", ToRevision: 2})
	refused(t, err, codes.FailedPrecondition, "revision 2", "securityContext.sysctls[0].name", "--allow-sysctl net.core.somaxconn")
	r.shared.cfg.Host = spec.AnyHostAccess()
	if _, err := r.api.Undo(r.ctx, &proto.UndoRequest{Name: "db", ToRevision: 2}); err != nil {
		t.Fatal(err)
	}
}
