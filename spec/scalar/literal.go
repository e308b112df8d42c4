package scalar

import (
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// LiteralKind is what a scalar was written as.
type LiteralKind int

// The kinds of a Literal.
const (
	TextLiteral LiteralKind = iota
	IntLiteral
	FloatLiteral
	BoolLiteral
)

// String names the kind for people.
func (k LiteralKind) String() string {
	switch k {
	case IntLiteral, FloatLiteral:
		return "a number"
	case BoolLiteral:
		return "true or false"
	}
	return "text"
}

// Literal is one scalar of a YAML or JSON document. The text of an integer is
// decimal, whatever notation it was written in.
type Literal struct {
	Text string
	Kind LiteralKind
}

// Scalar is a type of ours that is written as one scalar.
type Value interface {
	// FromLiteral sets the receiver; it fails with a HintError.
	FromLiteral(l Literal) error
}

// HintError says what is wrong with a value and what would be right.
type HintError struct{ What, Fix string }

// Error is what is wrong, and after a semicolon what would be right.
func (e *HintError) Error() string {
	if e.Fix == "" {
		return e.What
	}
	return e.What + "; " + e.Fix
}

func Hint(what, fix string) error { return &HintError{What: what, Fix: fix} }

// Quote shows a user's value in a message, cut to a bearable length.
func Quote(s string) string {
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
func jsonLiteral(b []byte) (Literal, error) {
	var v any
	if err := json.Unmarshal(b, &v); err != nil {
		return Literal{}, err
	}
	switch v := v.(type) {
	case string:
		return Literal{v, TextLiteral}, nil
	case bool:
		return Literal{strconv.FormatBool(v), BoolLiteral}, nil
	case float64:
		if _, err := strconv.ParseInt(string(b), 10, 64); err == nil {
			return Literal{string(b), IntLiteral}, nil
		}
		return Literal{string(b), FloatLiteral}, nil
	}
	return Literal{}, fmt.Errorf("%s is not a single value", Quote(string(b)))
}

// unmarshalScalar is the body of every scalar's UnmarshalJSON; null leaves s alone.
func Unmarshal(b []byte, s Value) error {
	if string(b) == "null" {
		return nil
	}
	l, err := jsonLiteral(b)
	if err != nil {
		return err
	}
	return s.FromLiteral(l)
}
