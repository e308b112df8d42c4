package manifest

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/stead-project/stead/spec/scalar"
)

// literalOf is the scalar that n is, or false with the problem reported.
func (d *decoder) literalOf(n *yaml.Node, path, want string) (scalar.Literal, bool) {
	if n.Kind != yaml.ScalarNode {
		d.wrongType(n, path, want)
		return scalar.Literal{}, false
	}
	switch tag := n.ShortTag(); tag {
	case "!!str", "!!timestamp":
		return scalar.Literal{Text: n.Value, Kind: scalar.TextLiteral}, true
	case "!!bool":
		return scalar.Literal{Text: strings.ToLower(n.Value), Kind: scalar.BoolLiteral}, true
	case "!!int":
		text, err := decimal(n)
		if err != nil {
			break
		}
		return scalar.Literal{Text: text, Kind: scalar.IntLiteral}, true
	case "!!float":
		return scalar.Literal{Text: strings.ReplaceAll(n.Value, "_", ""), Kind: scalar.FloatLiteral}, true
	default:
		d.fail(n, path, "the tag "+showKey(tag)+" is not understood", "remove it")
		return scalar.Literal{}, false
	}
	d.fail(n, path, "the number cannot be read", "")
	return scalar.Literal{}, false
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
func (d *decoder) ownScalar(n *yaml.Node, s scalar.Value, path string) {
	l, ok := d.literalOf(n, path, "a single value")
	if !ok {
		return
	}
	err := s.FromLiteral(l)
	if err == nil {
		return
	}
	var h *scalar.HintError
	if errors.As(err, &h) {
		d.fail(n, path, h.What, h.Fix)
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
		d.fail(n, path, notYet, "")
	}
}

func (d *decoder) text(n *yaml.Node, v reflect.Value, path string) {
	l, ok := d.literalOf(n, path, "text")
	if !ok {
		return
	}
	old := n.Style == 0 && oldBool(l.Text) && l.Kind == scalar.TextLiteral
	if l.Kind == scalar.TextLiteral && !old {
		v.SetString(l.Text)
		return
	}
	kind := l.Kind
	if old {
		kind = scalar.BoolLiteral
	}
	what, fix := "is "+kind.String()+", not text", "put it in quotes"
	if !d.secret {
		what, fix = n.Value+" "+what, fix+": "+scalar.Quote(n.Value)
	}
	d.fail(n, path, what, fix)
}

// truth reads true and false, and YAML 1.1's words for them as Kubernetes does.
func (d *decoder) truth(n *yaml.Node, v reflect.Value, path string) {
	l, ok := d.literalOf(n, path, "true or false")
	if !ok {
		return
	}
	switch word := strings.ToLower(l.Text); {
	case l.Kind == scalar.BoolLiteral:
		v.SetBool(word == "true")
	case l.Kind == scalar.TextLiteral && n.Style == 0 && oldBool(word):
		v.SetBool(word == "y" || word == "yes" || word == "on")
	default:
		d.fail(n, path, d.show(n)+"is "+l.Kind.String()+", not true or false", "write true or false, without quotes")
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
	i, err := strconv.ParseInt(l.Text, 10, 64)
	switch {
	case l.Kind == scalar.TextLiteral && err == nil:
		d.fail(n, path, d.show(n)+"is text, not a number", "write it without quotes: "+l.Text)
	case l.Kind == scalar.FloatLiteral:
		d.fail(n, path, d.show(n)+"is not a whole number", "")
	case l.Kind != scalar.IntLiteral:
		d.fail(n, path, d.show(n)+"is "+l.Kind.String()+", not a number", "")
	case err != nil || i < least || i > most:
		d.fail(n, path, d.show(n)+"is out of range", fmt.Sprintf("the maximum is %d", most))
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
		return scalar.Quote(n.Value) + " "
	}
	return n.Value + " "
}
