package spec

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// literalOf is the scalar that n is, or false with the problem reported.
func (d *decoder) literalOf(n *yaml.Node, path, want string) (literal, bool) {
	if n.Kind != yaml.ScalarNode {
		d.wrongType(n, path, want)
		return literal{}, false
	}
	switch tag := n.ShortTag(); tag {
	case "!!str", "!!timestamp":
		return literal{n.Value, textLiteral}, true
	case "!!bool":
		return literal{strings.ToLower(n.Value), boolLiteral}, true
	case "!!int":
		text, err := decimal(n)
		if err != nil {
			break
		}
		return literal{text, intLiteral}, true
	case "!!float":
		return literal{strings.ReplaceAll(n.Value, "_", ""), floatLiteral}, true
	default:
		d.fail(n, path, "the tag "+showKey(tag)+" is not understood", "remove it")
		return literal{}, false
	}
	d.fail(n, path, "the number cannot be read", "")
	return literal{}, false
}

// decimal is the integer of n, which may be written as 0x1f, 0644 or 1_000.
func decimal(n *yaml.Node) (string, error) {
	var v any
	if err := n.Decode(&v); err != nil {
		return "", err
	}
	return fmt.Sprint(v), nil
}

// ownScalar reads n into a scalar type of ours.
func (d *decoder) ownScalar(n *yaml.Node, s scalar, path string) {
	l, ok := d.literalOf(n, path, "a single value")
	if !ok {
		return
	}
	err := s.fromLiteral(l)
	if err == nil {
		return
	}
	var h *hintError
	if errors.As(err, &h) {
		d.fail(n, path, h.what, h.fix)
		return
	}
	d.fail(n, path, "the value cannot be read", "")
}

// plainScalar reads n into a string, bool or integer.
func (d *decoder) plainScalar(n *yaml.Node, v reflect.Value, path string) {
	switch v.Kind() {
	case reflect.String:
		d.text(n, v, path)
	case reflect.Bool:
		d.truth(n, v, path)
	case reflect.Int32, reflect.Int64:
		d.number(n, v, path)
	default:
		d.fail(n, path, "not supported yet", "")
	}
}

func (d *decoder) text(n *yaml.Node, v reflect.Value, path string) {
	l, ok := d.literalOf(n, path, "text")
	if !ok {
		return
	}
	old := n.Style == 0 && oldBool(l.text) && l.kind == textLiteral
	if l.kind == textLiteral && !old {
		v.SetString(l.text)
		return
	}
	kind := l.kind
	if old {
		kind = boolLiteral
	}
	what, fix := "is "+kind.String()+", not text", "put it in quotes"
	if !d.secret {
		what, fix = n.Value+" "+what, fix+": "+quote(n.Value)
	}
	d.fail(n, path, what, fix)
}

// truth reads true and false, and YAML 1.1's words for them as Kubernetes does.
func (d *decoder) truth(n *yaml.Node, v reflect.Value, path string) {
	l, ok := d.literalOf(n, path, "true or false")
	if !ok {
		return
	}
	switch word := strings.ToLower(l.text); {
	case l.kind == boolLiteral:
		v.SetBool(word == "true")
	case l.kind == textLiteral && n.Style == 0 && oldBool(word):
		v.SetBool(word == "y" || word == "yes" || word == "on")
	default:
		d.fail(n, path, d.show(n)+"is "+l.kind.String()+", not true or false", "write true or false, without quotes")
	}
}

func (d *decoder) number(n *yaml.Node, v reflect.Value, path string) {
	l, ok := d.literalOf(n, path, "a number")
	if !ok {
		return
	}
	least, most := int64(math.MinInt32), int64(math.MaxInt32)
	if v.Kind() == reflect.Int64 {
		least, most = math.MinInt64, math.MaxInt64
	}
	i, err := strconv.ParseInt(l.text, 10, 64)
	switch {
	case l.kind == textLiteral && err == nil:
		d.fail(n, path, d.show(n)+"is text, not a number", "write it without quotes: "+l.text)
	case l.kind == floatLiteral:
		d.fail(n, path, d.show(n)+"is no whole number", "")
	case l.kind != intLiteral:
		d.fail(n, path, d.show(n)+"is "+l.kind.String()+", not a number", "")
	case err != nil || i < least || i > most:
		d.fail(n, path, d.show(n)+"is out of range", fmt.Sprintf("the most is %d", most))
	default:
		v.SetInt(i)
	}
}

// show quotes the value of n for the head of a message, unless it may be secret.
func (d *decoder) show(n *yaml.Node) string {
	if d.secret {
		return ""
	}
	if n.ShortTag() == "!!str" {
		return quote(n.Value) + " "
	}
	return n.Value + " "
}
