package spec

import (
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// literalKind is what a scalar was written as.
type literalKind int

const (
	textLiteral literalKind = iota
	intLiteral
	floatLiteral
	boolLiteral
)

// String names the kind for people.
func (k literalKind) String() string {
	switch k {
	case intLiteral, floatLiteral:
		return "a number"
	case boolLiteral:
		return "true or false"
	}
	return "text"
}

// literal is one scalar of a YAML or JSON document. The text of an integer is
// decimal, whatever notation it was written in.
type literal struct {
	text string
	kind literalKind
}

// scalar is a type of ours that is written as one scalar.
type scalar interface {
	// fromLiteral sets the receiver; it fails with a hintError.
	fromLiteral(l literal) error
}

// hintError says what is wrong with a value and what would be right.
type hintError struct{ what, fix string }

func (e *hintError) Error() string {
	if e.fix == "" {
		return e.what
	}
	return e.what + "; " + e.fix
}

func hint(what, fix string) error { return &hintError{what, fix} }

// quote shows a user's value in a message, cut to a bearable length.
func quote(s string) string {
	const most = 48
	if len(s) > most {
		cut := most
		for cut > 0 && !utf8.RuneStart(s[cut]) {
			cut--
		}
		s = s[:cut] + "…"
	}
	return strconv.Quote(s)
}

// jsonLiteral reads a JSON string, number or bool.
func jsonLiteral(b []byte) (literal, error) {
	var v any
	if err := json.Unmarshal(b, &v); err != nil {
		return literal{}, err
	}
	switch v := v.(type) {
	case string:
		return literal{v, textLiteral}, nil
	case bool:
		return literal{strconv.FormatBool(v), boolLiteral}, nil
	case float64:
		if _, err := strconv.ParseInt(string(b), 10, 64); err == nil {
			return literal{string(b), intLiteral}, nil
		}
		return literal{string(b), floatLiteral}, nil
	}
	return literal{}, fmt.Errorf("%s is no single value", quote(string(b)))
}

// unmarshalScalar is the body of every scalar's UnmarshalJSON; null leaves s alone.
func unmarshalScalar(b []byte, s scalar) error {
	if string(b) == "null" {
		return nil
	}
	l, err := jsonLiteral(b)
	if err != nil {
		return err
	}
	return s.fromLiteral(l)
}
