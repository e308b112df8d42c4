package registry

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

// Login is a user's name and password. It shows neither when it is printed or logged.
type Login struct{ User, Password string }

// String hides the credential.
func (Login) String() string { return "[credential]" }

// GoString hides the credential.
func (Login) GoString() string { return "[credential]" }

// LogValue hides the credential.
func (c Login) LogValue() slog.Value { return slog.StringValue(c.String()) }

// entry is what a configuration of docker has for one registry.
type entry struct {
	Username string `json:"username"`
	Password string `json:"password"`
	Auth     string `json:"auth"`
}

// Entries is the content of one Secret: entries by registry, or part of it.
type Entries map[string]entry

// errNotConfig: the text may have the credentials in it, so that no more is said of it.
var errNotConfig = errors.New("it is not a configuration of docker")

// ParseSecret reads a Secret of one of the two types that Kubernetes uses for imagePullSecrets;
// nil: it is of another type, or lacks the type's key, and has no credentials. Nothing of the content
// is in the error.
func ParseSecret(kind string, content map[string]scalar.Bytes) (Entries, error) {
	key := spec.PullSecretKey(kind)
	switch text := content[key]; {
	case key == "" || len(text) == 0:
		return nil, nil
	case kind == spec.SecretDockerConfigJSON:
		var file struct {
			Auths Entries `json:"auths"`
		}
		if err := json.Unmarshal(text, &file); err != nil {
			return nil, fmt.Errorf("%s: %w", key, errNotConfig)
		}
		return file.Auths.decoded()
	default:
		var config Entries
		if err := json.Unmarshal(text, &config); err != nil {
			return nil, fmt.Errorf("%s: %w", key, errNotConfig)
		}
		return config.decoded()
	}
}

// decoded takes the name and the password of an entry from its field auth, if it has one.
func (c Entries) decoded() (Entries, error) {
	out := Entries{}
	for _, at := range slices.Sorted(maps.Keys(c)) {
		e := c[at]
		if e.Auth != "" {
			encoding := base64.RawStdEncoding
			if strings.HasSuffix(strings.TrimSpace(e.Auth), "=") {
				encoding = base64.StdEncoding
			}
			text, err := encoding.DecodeString(e.Auth)
			user, password, found := strings.Cut(string(text), ":")
			if err != nil || !found {
				return nil, fmt.Errorf("the field auth of %s is not the base64 form of USER:PASSWORD", scalar.Quote(at))
			}
			e = entry{Username: user, Password: password}
		}
		out[at] = e
	}
	return out, nil
}
