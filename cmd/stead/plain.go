package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/stead-project/stead/spec"
)

// plainLines is text of several lines, each as any terminal shows it.
func plainLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		lines[i] = spec.Plain(l)
	}
	return strings.Join(lines, "\n")
}

// plainJSON writes the characters that control a terminal and that JSON leaves as they are
// as \u009b; they stand in strings only.
func plainJSON(doc []byte) []byte {
	var out []byte
	for _, r := range string(doc) {
		if r >= 0x7f && r < 0xa0 {
			out = fmt.Appendf(out, `\u%04x`, r)
			continue
		}
		out = utf8.AppendRune(out, r)
	}
	return out
}

// forReader is where to write what a member wrote: as it is to a file or a program, and to
// a terminal without what would control it, unless raw.
func forReader(out io.Writer, raw bool) io.Writer {
	if f, ok := out.(*os.File); !ok || raw || !term.IsTerminal(int(f.Fd())) {
		return out
	}
	return &screen{out: out}
}

// screen writes control characters as \x1b, but ends of lines and tabs.
type screen struct {
	out  io.Writer
	rest []byte // the beginning of a character whose end has not come
}

// Write implements io.Writer.
func (s *screen) Write(p []byte) (int, error) {
	in := append(s.rest, p...)
	var text []byte
	for len(in) > 0 && utf8.FullRune(in) {
		r, n := utf8.DecodeRune(in)
		switch {
		case r == '\n' || r == '\t':
			text = append(text, in[0])
		case r == utf8.RuneError && n == 1 || r < ' ' || r >= 0x7f && r < 0xa0:
			text = fmt.Appendf(text, `\x%02x`, in[n-1])
		default:
			text = append(text, in[:n]...)
		}
		in = in[n:]
	}
	s.rest = append([]byte{}, in...)
	if _, err := s.out.Write(text); err != nil {
		return 0, err
	}
	return len(p), nil
}
