package control

import (
	"strings"
	"testing"

	"github.com/stead-project/stead/proto"
)

// TestPasswordsThatARenderingMadeAnewAreSaid, with the place in the file, also by a dry run; and of
// nothing else.
func TestPasswordsThatARenderingMadeAnewAreSaid(t *testing.T) {
	const set = `
      - name: side
        image: example.local/side:1
        env: [{name: PASS, valueFrom: {secretKeyRef: {name: pass, key: password}}}]
`
	using := strings.Replace(setYAML, "  volumeClaimTemplates:", strings.TrimPrefix(set, "\n")+"  volumeClaimTemplates:", 1)
	secret := func(data string) string {
		return "apiVersion: v1\nkind: Secret\nmetadata: {name: pass}\nstringData:\n  " + strings.ReplaceAll(data, ", ", "\n  ") + "\n"
	}
	const first = "user: admin, password: aB3dE6gH9j, note: one two three"
	for name, c := range map[string]struct {
		secret string
		with   []string
		want   string // in the warning; "": none
	}{
		"another of the same length": {"user: admin, password: Zz0Yy1Xx2W, note: one two three", []string{using},
			"a.yaml:6:3: stringData[password]: Secret pass: another value of password, as a chart makes that renders passwords at random; the data of db keep the old one; render"},
		"without the set":    {"user: admin, password: Zz0Yy1Xx2W, note: x", nil, ""},
		"of another set":     {"user: admin, password: Zz0Yy1Xx2W, note: x", []string{setYAML}, ""},
		"another length":     {"user: admin, password: chosen-by-a-person, note: x", []string{using}, ""},
		"the same":           {first, []string{using}, ""},
		"no credential":      {"user: nimda, password: aB3dE6gH9j, note: one two thr33", []string{using}, ""},
		"another key":        {"user: admin, password: aB3dE6gH9j, replication-password: Zz0Yy1Xx2W", []string{using}, ""},
		"not made at random": {"user: admin, password: a b c d e.", []string{using}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.mustApply(secret(first), using)
			req := &proto.ApplyRequest{DryRun: true, Files: []*proto.File{{Name: "a.yaml", Content: []byte(secret(c.secret))}}}
			for _, m := range c.with {
				req.Files = append(req.Files, &proto.File{Name: "set.yaml", Content: []byte(m)})
			}
			for range 2 { // then in earnest
				out, err := r.api.Apply(r.ctx, req)
				if err != nil {
					t.Fatal(err)
				}
				got := strings.Join(out.GetWarnings(), "\n")
				if said := strings.Contains(got, "at random"); said != (c.want != "") || !strings.Contains(got, c.want) {
					t.Errorf("got %q, want %q", got, c.want)
				}
				if strings.Contains(got, "aB3dE6gH9j") || strings.Contains(got, "Zz0Yy1Xx2W") {
					t.Errorf("%q shows a value", got)
				}
				req.DryRun = false
			}
		})
	}
}

// TestANewSetWithAnOldSecretHasNothingToKeep: its data are made with the new value.
func TestANewSetWithAnOldSecretHasNothingToKeep(t *testing.T) {
	using := strings.Replace(setYAML, "image: example.local/db:1", "image: example.local/db:1\n        envFrom: [{secretRef: {name: pass}}]", 1)
	r := newRig(t)
	r.mustApply("{apiVersion: v1, kind: Secret, metadata: {name: pass}, stringData: {password: aB3dE6gH9j}}")
	out, err := r.apply("{apiVersion: v1, kind: Secret, metadata: {name: pass}, stringData: {password: Zz0Yy1Xx2W}}", using)
	if err != nil || strings.Contains(strings.Join(out.GetWarnings(), "\n"), "at random") {
		t.Errorf("got %v, %v", out.GetWarnings(), err)
	}
}
