package records

import (
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

// ServiceRecord, ConfigRecord and SecretRecord are services/<ns>/<name>,
// configs/<ns>/<name> and secrets/<ns>/<name>. Only writer: control.
type ServiceRecord struct {
	Namespace  spec.Namespace    `json:"namespace"`
	Name       string            `json:"name"`
	Generation int64             `json:"generation"`
	Labels     map[string]string `json:"labels,omitempty"`
	Spec       spec.ServiceSpec  `json:"spec"`
}

// ConfigRecord holds the files of a ConfigMap.
type ConfigRecord struct {
	Namespace  spec.Namespace          `json:"namespace"`
	Name       string                  `json:"name"`
	Generation int64                   `json:"generation"`
	Labels     map[string]string       `json:"labels,omitempty"`
	Files      map[string]scalar.Bytes `json:"files"`
}

// SecretRecord holds the files of a Secret, sealed with the cluster's key.
type SecretRecord struct {
	Namespace  spec.Namespace    `json:"namespace"`
	Name       string            `json:"name"`
	Generation int64             `json:"generation"`
	Labels     map[string]string `json:"labels,omitempty"`
	Type       string            `json:"type,omitempty"`
	// Keys are the names of the files, for get and describe; never their content.
	Keys []string `json:"keys"`
	// Sealed is nonce and AES-256-GCM ciphertext of the JSON of map[string][]byte,
	// with "secrets/<ns>/<name>" as additional data.
	Sealed scalar.Bytes `json:"sealed"`
}
