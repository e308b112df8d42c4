package files

import "strings"

// expand replaces $(NAME) by the value that lookup knows, leaves it as it is when
// it knows none, and turns $$ into $, as Kubernetes does.
func expand(in string, lookup func(string) (string, bool)) string {
	var b strings.Builder
	for {
		at := strings.IndexByte(in, '$')
		if at < 0 || at == len(in)-1 {
			b.WriteString(in)
			return b.String()
		}
		b.WriteString(in[:at])
		rest := in[at+1:]
		end := strings.IndexByte(rest, ')')
		switch {
		case rest[0] == '$':
			b.WriteByte('$')
			in = rest[1:]
		case rest[0] == '(' && end > 0:
			value, ok := lookup(rest[1:end])
			if !ok {
				value = "$" + rest[:end+1]
			}
			b.WriteString(value)
			in = rest[end+1:]
		default:
			b.WriteByte('$')
			in = rest
		}
	}
}
