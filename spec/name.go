package spec

import (
	"regexp"
	"strings"
)

var (
	labelName   = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)
	labelWord   = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?$`)
	configKey   = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)
	wholeDomain = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$`)
)

// ValidLabel reports whether s is a DNS-1123 label: at most 63 of a-z, 0-9 and -,
// with a letter or digit at both ends.
func ValidLabel(s string) bool { return len(s) <= 63 && labelName.MatchString(s) }

// ValidSubdomain reports whether s is a DNS-1123 subdomain: labels joined by dots,
// at most 253 characters.
func ValidSubdomain(s string) bool { return len(s) <= 253 && wholeDomain.MatchString(s) }

// validLabelKey: [prefix/]name, as the keys of labels and annotations.
func validLabelKey(s string) bool {
	prefix, name, found := strings.Cut(s, "/")
	if !found {
		prefix, name = "", s
	}
	return (!found || ValidSubdomain(prefix)) && len(name) <= 63 && labelWord.MatchString(name)
}

// validLabelValue: empty, or at most 63 characters.
func validLabelValue(s string) bool { return s == "" || len(s) <= 63 && labelWord.MatchString(s) }

// validEnvName: what Kubernetes takes for the name of a variable.
func validEnvName(s string) bool {
	return s != "" && len(s) <= 4096 && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' || r == '=' })
}

// validConfigKey: the name of a file in a ConfigMap or Secret.
func validConfigKey(s string) bool {
	return s != "" && len(s) <= 253 && configKey.MatchString(s) && s != "." && !strings.HasPrefix(s, "..")
}
