package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"github.com/stead-project/stead/spec/scalar"
)

// The bounds of what Parse reads.
const (
	maxSourceBytes  = 8 << 20
	maxDocuments    = 10_000
	maxNesting      = 100
	maxDocumentSize = 500_000 // separators of one document: bounds its nodes
	maxAliasReads   = 100_000 // values of one source read through aliases; long texts count more
	maxAnnotation   = 4 << 10 // bytes of the annotation stead.dev/spec
)

// document is one YAML document of a source, not yet decoded.
type document struct {
	file   string
	source int // which source it is of, from 0
	// text is the piece of the source that holds the document; line is the number
	// of lines before it.
	text []byte
	line int
	root *yaml.Node
	// reads counts the values that aliases of the source may still expand to.
	reads *int
}

func (d *document) place(n *yaml.Node) place { return place{n.Line + d.line, n.Column} }

// readDocuments calls each for every document of s that is not empty, and returns
// what cannot be read. A broken document does not hide the ones after it.
func readDocuments(s Source, each func(*document)) []Problem {
	content := bytes.TrimPrefix(s.Content, []byte("\ufeff"))
	if p, bad := unreadable(s.Name, content); bad {
		return []Problem{p}
	}
	var problems []Problem
	line, count, reads := 0, 0, maxAliasReads
	for len(content) > 0 {
		text := nextPiece(content)
		content = content[len(text):]
		err := readPiece(text, func(root *yaml.Node) error {
			count++
			if count > maxDocuments {
				return &scalar.HintError{What: fmt.Sprintf("more than %d documents", maxDocuments), Fix: "split the file"}
			}
			each(&document{file: s.Name, text: text, line: line, root: root, reads: &reads})
			return nil
		})
		if err != nil {
			problems = append(problems, syntaxProblem(s.Name, line, err))
		}
		if count > maxDocuments {
			break
		}
		line += bytes.Count(text, []byte("\n"))
	}
	return problems
}

// unreadable finds what makes a whole source unreadable: its size, or a character
// that YAML does not allow.
func unreadable(file string, content []byte) (Problem, bool) {
	if len(content) > maxSourceBytes {
		return Problem{File: file, What: fmt.Sprintf("the file has %d bytes, the maximum is %d", len(content), maxSourceBytes),
			Fix: "split it"}, true
	}
	line, start := 1, 0
	for i := 0; i < len(content); {
		r, size := utf8.DecodeRune(content[i:])
		if what, fix := unreadableRune(r, size); what != "" {
			column := utf8.RuneCount(content[start:i]) + 1
			return Problem{File: file, Line: line, Column: column, What: what, Fix: fix}, true
		}
		i += size
		if r == '\n' {
			line, start = line+1, i
		}
	}
	return Problem{}, false
}

// unreadableRune says what is wrong with a character of size bytes, or nothing.
func unreadableRune(r rune, size int) (what, fix string) {
	switch {
	case r == utf8.RuneError && size == 1:
		return "the file is not UTF-8", "save it as UTF-8; put binary content as base64 into binaryData"
	case r == 0:
		return "the file contains a NUL byte", "is it a text file?"
	case r < ' ' && r != '\n' && r != '\r' && r != '\t' || r == 0x7f:
		return fmt.Sprintf("the control character %U is not allowed", r), "write it as an escape in double quotes"
	}
	return "", ""
}

// nextPiece cuts before the next line that begins a document and after the next
// that ends one. Neither can be part of a value, so a piece can be read alone.
func nextPiece(content []byte) []byte {
	begun := false
	for at := 0; at < len(content); {
		end := len(content)
		if i := bytes.IndexByte(content[at:], '\n'); i >= 0 {
			end = at + i + 1
		}
		text := content[at:end]
		switch {
		case isMarker(text, "..."):
			return content[:end]
		case isMarker(text, "---"):
			if begun {
				return content[:at]
			}
			begun = true
		case len(bytes.TrimSpace(text)) > 0 && text[0] != '#' && text[0] != '%':
			begun = true
		}
		at = end
	}
	return content
}

func isMarker(line []byte, marker string) bool {
	rest, ok := bytes.CutPrefix(line, []byte(marker))
	return ok && (len(rest) == 0 || strings.IndexByte(" \t\r\n", rest[0]) >= 0)
}

// readPiece reads the documents of a piece: one, and maybe empty ones.
func readPiece(text []byte, each func(root *yaml.Node) error) (err error) {
	defer func() {
		// The YAML library may panic; what makes it panic is bad input.
		if r := recover(); r != nil {
			err = errors.New("yaml: the document cannot be read")
		}
	}()
	size := 0
	for _, c := range text {
		switch c {
		case '\n', ',', ':', '[', '{':
			size++
		}
	}
	if size > maxDocumentSize {
		return &scalar.HintError{What: fmt.Sprintf("the document has more than %d values", maxDocumentSize), Fix: "split it"}
	}
	reader := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var n yaml.Node
		if err := reader.Decode(&n); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if root := n.Content[0]; root.ShortTag() != "!!null" {
			if err := each(root); err != nil {
				return err
			}
		}
	}
}

var yamlError = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)`)

var parserError = regexp.MustCompile(`^did not find expected (<document start>|',' or |key|'-' indicator|node content)`)

// syntaxProblem turns an error of the YAML reader into a problem. It shows
// nothing of the document: that may be a Secret.
func syntaxProblem(file string, line int, err error) Problem {
	p := Problem{File: file, Line: line + 1, Column: 1, What: err.Error()}
	var h *scalar.HintError
	if errors.As(err, &h) {
		p.What, p.Fix = h.What, h.Fix
		return p
	}
	if m := yamlError.FindStringSubmatch(err.Error()); m != nil {
		n, _ := strconv.Atoi(m[1]) // absent: the first line
		if n > 0 && parserError.MatchString(m[2]) {
			n++ // its parser, unlike its scanner, counts lines from 0
		}
		p.Line, p.What = line+max(n, 1), "invalid YAML: "+m[2]
	}
	if strings.Contains(p.What, "unknown anchor") {
		p.What, p.Fix = "an alias (*name) of an unknown anchor (&name)", "quote text that starts with *"
	}
	return p
}
