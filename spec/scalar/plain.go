package scalar

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Plain is text as one line that any terminal shows as it is: what members, programs and
// nodes say may hold what moves a cursor, names a window or forges a line. Ends of lines
// and tabs become spaces, and what cannot be printed becomes U+FFFD.
func Plain(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case r == utf8.RuneError || !unicode.IsPrint(r):
			return utf8.RuneError
		}
		return r
	}, text)
}
