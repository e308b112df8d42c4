package manifest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// JSONToYAML writes one JSON document as block YAML, keys in their order. Text that
// YAML 1.1 would read as something else is quoted. Parse reads it back as it was.
func JSONToYAML(doc []byte) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	n, err := jsonNode(d)
	if err != nil {
		return nil, fmt.Errorf("read JSON: %w", err)
	}
	var out bytes.Buffer
	e := yaml.NewEncoder(&out)
	e.SetIndent(2)
	if err := e.Encode(n); err != nil {
		return nil, fmt.Errorf("write YAML: %w", err)
	}
	if err := e.Close(); err != nil {
		return nil, fmt.Errorf("write YAML: %w", err)
	}
	return out.Bytes(), nil
}

// jsonNode reads the next JSON value of d.
func jsonNode(d *json.Decoder) (*yaml.Node, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch v := token.(type) {
	case json.Delim:
		return jsonCollection(d, v)
	case string:
		return textNode(v), nil
	case json.Number:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: v.String()}, nil
	case bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: fmt.Sprint(v)}, nil
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Value: "null"}, nil
}

// jsonCollection reads a list or an object up to its end; empty ones are written
// as [] and {}.
func jsonCollection(d *json.Decoder, open json.Delim) (*yaml.Node, error) {
	n := &yaml.Node{Kind: yaml.SequenceNode}
	if open == '{' {
		n.Kind = yaml.MappingNode
	}
	for d.More() {
		child, err := jsonNode(d)
		if err != nil {
			return nil, err
		}
		n.Content = append(n.Content, child)
	}
	if len(n.Content) == 0 {
		n.Style = yaml.FlowStyle
	}
	_, err := d.Token() // the closing bracket
	return n, err
}

// textNode writes s plain where that is read back as the same text everywhere,
// as a literal block where it has lines, and else in double quotes.
func textNode(s string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
	switch {
	case plainLines(s):
		n.Style = yaml.LiteralStyle
	case !plainText(s):
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}

// plainLines: several lines that a literal block keeps exactly.
func plainLines(s string) bool {
	return strings.Contains(s, "\n") && s[0] != '\n' && s[0] != ' ' && s[0] != '\t' &&
		!strings.HasSuffix(s, "\n\n") && !strings.Contains(s, " \n") && !strings.Contains(s, "\t\n") &&
		strings.TrimRight(s, " \t") == s && !strings.ContainsFunc(s, func(r rune) bool { return r != '\n' && r != '\t' && !printable(r) })
}

// plainText: words that no YAML reader takes for anything but text.
func plainText(s string) bool {
	if s == "" || oldBool(s) || base60(s) || strings.ContainsFunc(s, func(r rune) bool { return !printable(r) }) {
		return false
	}
	var v any
	err := yaml.Unmarshal([]byte(s), &v)
	text, isText := v.(string)
	return err == nil && isText && text == s
}

// base60: digits and colons, which YAML 1.1 reads as a number.
func base60(s string) bool {
	return strings.Contains(s, ":") && strings.Trim(s, "0123456789:._+-") == ""
}

// printable: what needs no escape in YAML.
func printable(r rune) bool {
	return r >= ' ' && r <= '~' || r >= 0xa0 && r != 0xfeff && r != 0xfffd && r != 0x2028 && r != 0x2029
}

// oldBool: words that YAML 1.1, and so Kubernetes, reads as true or false.
func oldBool(s string) bool {
	return slices.Contains([]string{"y", "n", "yes", "no", "on", "off"}, strings.ToLower(s))
}
