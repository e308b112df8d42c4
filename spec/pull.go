package spec

// PullSecret names a Secret with credentials of registries (Kubernetes' LocalObjectReference).
type PullSecret struct {
	// Name of a Secret of the set's namespace, of the type kubernetes.io/dockerconfigjson or
	// kubernetes.io/dockercfg; of an empty name nothing is looked for.
	Name string `json:"name,omitempty"`
}

// The types of Secrets that have credentials of registries.
const (
	SecretDockerConfigJSON = "kubernetes.io/dockerconfigjson"
	SecretDockercfg        = "kubernetes.io/dockercfg"
)

// PullSecretKey is the key that has the credentials in a Secret of a type; "": those of this type
// have none.
func PullSecretKey(kind string) string {
	switch kind {
	case SecretDockerConfigJSON:
		return ".dockerconfigjson"
	case SecretDockercfg:
		return ".dockercfg"
	}
	return ""
}
