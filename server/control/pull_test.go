package control

import (
	"strings"
	"testing"

	"github.com/stead-project/stead/proto"
)

func TestImagePullSecretsWithoutCredentialsAreWarnings(t *testing.T) {
	r := newRig(t)
	const key = "apiVersion: v1\nkind: Secret\nmetadata: {name: key}\ntype: kubernetes.io/dockerconfigjson\nstringData: {.dockerconfigjson: '{}'}\n"
	plain := strings.Replace(key, "name: key}\ntype: kubernetes.io/dockerconfigjson", "name: plain}", 1)
	with := strings.Replace(setYAML, "      containers:", "      imagePullSecrets: [{name: key}, {name: plain}, {name: nowhere}, {name: ''}]\n      containers:", 1)
	for _, files := range [][]string{{with, key, plain}, {with}} { // given in this apply, and stored
		out, err := r.apply(files...)
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Join(out.GetWarnings(), "\n")
		for _, want := range []string{
			"set default/db: there is no Secret nowhere, which imagePullSecrets names; until it is there, images are pulled without it",
			"set default/db: Secret plain, which imagePullSecrets names, has the type Opaque and is not used; write type: kubernetes.io/dockerconfigjson",
		} {
			if !strings.Contains(got, want) {
				t.Errorf("got %q, want %q in it", got, want)
			}
		}
		if strings.Contains(got, "Secret key") || strings.Contains(got, "members wait") {
			t.Errorf("got %q", got)
		}
	}
	out, err := r.api.Delete(r.ctx, &proto.DeleteRequest{Kind: proto.KindSecret, Name: "key"})
	if got := strings.Join(out.GetEffects(), "\n"); err != nil || got != "set default/db names it in imagePullSecrets: images that its nodes do not have are pulled without it" {
		t.Errorf("deleting it says %q, %v", got, err)
	}
}
