package manifest

import (
	"encoding/json"

	"github.com/stead-project/stead/spec"
)

// pullSecrets checks imagePullSecrets. As in Kubernetes 1.33, one without a name and one that is
// named twice do no harm.
func (c *checks) pullSecrets(at string, secrets []spec.PullSecret) {
	seen := map[string]bool{}
	for i, s := range secrets {
		p := index(at, i) + ".name"
		switch {
		case s.Name == "":
			c.warn(p, "is empty and has no effect here, as in Kubernetes", "")
		case seen[s.Name]:
			c.warn(p, "is there twice; the second has no effect here, as in Kubernetes", "")
		default:
			c.subdomain(p, s.Name)
		}
		seen[s.Name] = true
	}
}

// credentials checks, as Kubernetes 1.33, that a Secret of a type with credentials of registries
// has them. It must not show values.
func (c *checks) credentials(s *spec.Secret) {
	key := spec.PullSecretKey(s.Type)
	if key == "" {
		return
	}
	text, given := s.Files()[key]
	at := "data[" + showKey(key) + "]"
	if _, plain := s.StringData[key]; plain {
		at = "stringData[" + showKey(key) + "]"
	}
	var object map[string]any
	switch {
	case !given:
		c.fail("data", "has no key "+key, "write it, as a Secret of type "+s.Type+" needs it, or another type")
	case json.Unmarshal(text, &object) != nil:
		c.fail(at, "is not a JSON object", "write the content of a docker configuration, as 'kubectl create secret docker-registry' does")
	}
}
