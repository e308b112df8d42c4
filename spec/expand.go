package spec

import "strings"

// Expand replaces each $(NAME) in value by what lookup has for it, as Kubernetes
// does for env, command and args: an unknown name stays as it is written, $$
// stands for one $ (so $$(NAME) is the text $(NAME)), any other $ for itself.
// What lookup returns is not expanded again.
func Expand(value string, lookup func(name string) (string, bool)) string {
	var out strings.Builder
	for {
		before, after, found := strings.Cut(value, "$")
		out.WriteString(before)
		if !found {
			return out.String()
		}
		switch {
		case strings.HasPrefix(after, "$"):
			out.WriteByte('$')
			value = after[1:]
		case strings.HasPrefix(after, "("):
			name, rest, closed := strings.Cut(after[1:], ")")
			if !closed {
				out.WriteString("$(")
				value = after[1:]
				continue
			}
			if known, ok := lookup(name); ok {
				out.WriteString(known)
			} else {
				out.WriteString("$(" + name + ")")
			}
			value = rest
		default:
			out.WriteByte('$')
			value = after
		}
	}
}
