package scalar

import (
	"regexp"
	"strings"
)

var (
	labelName   = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)
	labelWord   = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?$`)
	wholeDomain = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$`)
)

// ValidLabel reports whether s is a DNS-1123 label: at most 63 of a-z, 0-9 and -,
// with a letter or digit at both ends.
func ValidLabel(s string) bool { return len(s) <= 63 && labelName.MatchString(s) }

// ValidSubdomain reports whether s is a DNS-1123 subdomain: labels joined by dots,
// at most 253 characters.
func ValidSubdomain(s string) bool { return len(s) <= 253 && wholeDomain.MatchString(s) }

// ValidLabelKey: [prefix/]name, as the keys of labels and annotations.
func ValidLabelKey(s string) bool {
	prefix, name, found := strings.Cut(s, "/")
	if !found {
		prefix, name = "", s
	}
	return (!found || ValidSubdomain(prefix)) && len(name) <= 63 && labelWord.MatchString(name)
}

// ValidLabelValue: empty, or at most 63 characters.
func ValidLabelValue(s string) bool { return s == "" || len(s) <= 63 && labelWord.MatchString(s) }

// ParseLabel reads key=value.
func ParseLabel(text string) (key, value string, err error) {
	key, value, given := strings.Cut(text, "=")
	if !given || !ValidLabelKey(key) || !ValidLabelValue(value) {
		return "", "", Hint(Quote(text)+" is not a label", "write key=value, of letters, digits, -, _ and .")
	}
	return key, value, nil
}
