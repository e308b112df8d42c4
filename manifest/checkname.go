package manifest

import (
	"regexp"
	"strings"
)

var configKey = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)

// validEnvName: what Kubernetes takes for the name of a variable.
func validEnvName(s string) bool {
	return s != "" && len(s) <= 4096 && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' || r == '=' })
}

// validConfigKey: the name of a file in a ConfigMap or Secret.
func validConfigKey(s string) bool {
	return s != "" && len(s) <= 253 && configKey.MatchString(s) && s != "." && !strings.HasPrefix(s, "..")
}
