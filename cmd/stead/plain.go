package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/stead-project/stead/spec/scalar"
)

// plainLines returns text of several lines without characters that control a terminal.
func plainLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		lines[i] = scalar.Plain(l)
	}
	return strings.Join(lines, "\n")
}

// plainJSON writes characters that control a terminal, and that JSON allows in strings, as
// \u009b.
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

// forReader returns where to write output of a member: unchanged to a file or a program, and
// to a terminal without characters that control it, unless raw.
func forReader(out io.Writer, raw bool) io.Writer {
	if _, ok := terminal(out); !ok || raw {
		return out
	}
	return &screen{out: out}
}

// terminal returns the descriptor of a reader or writer that is a terminal.
func terminal(x any) (descriptor int, ok bool) {
	f, ok := x.(*os.File)
	if !ok {
		return 0, false
	}
	return int(f.Fd()), term.IsTerminal(int(f.Fd()))
}

// screen writes control characters as \x1b, except newlines and tabs.
type screen struct {
	out  io.Writer
	rest []byte // the first bytes of a character that is not complete yet
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
