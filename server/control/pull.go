package control

import (
	"fmt"
	"slices"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/dispatch"
	"github.com/stead-project/stead/spec"
)

// withoutCredentials warns of the imagePullSecrets of a set of this apply that have no credentials
// for nodes: nothing waits for them, and images are pulled without.
func (a *projection) withoutCredentials(v cache.View) []string {
	var out []string
	for _, ref := range a.refs() {
		set := a.sets[ref]
		for _, f := range dispatch.PullSecretsOf(ref.Namespace, &set.Spec.Template) {
			kind, known := a.files[f]
			if stored := v.Secret(f.Namespace, f.Name); !known && stored != nil {
				kind, known = stored.Type, true
			}
			switch {
			case !known:
				out = append(out, fmt.Sprintf("set %s: there is no Secret %s, which imagePullSecrets names; "+
					"until it is there, images are pulled without it", ref, f.Name))
			case spec.PullSecretKey(kind) == "":
				out = append(out, fmt.Sprintf("set %s: Secret %s, which imagePullSecrets names, has the type %s and is not used; write type: %s",
					ref, f.Name, kind, spec.SecretDockerConfigJSON))
			}
		}
	}
	return out
}

// pulledWith warns of the sets whose images are pulled with the credentials of a Secret.
func pulledWith(set *records.Set, ref dispatch.FileRef) string {
	if !slices.Contains(dispatch.PullSecretsOf(ref.Namespace, &set.Spec.Template), ref) {
		return ""
	}
	return fmt.Sprintf("set %s names it in imagePullSecrets: images that its nodes do not have are pulled without it", set.Ref)
}
