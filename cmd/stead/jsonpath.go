package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strconv"

	"k8s.io/client-go/util/jsonpath"
)

// relaxedPath are the ways in which kubectl takes one path where a template would be too much:
// name, .name, {name}, {.name}.
var relaxedPath = regexp.MustCompile(`^\{\.?([^{}]+)\}$|^\.?([^{}]+)$`)

// onePath is the template of one path in any of these ways.
func onePath(text string) (string, error) {
	m := relaxedPath.FindStringSubmatch(text)
	if m == nil {
		return "", fmt.Errorf("invalid path %q; write it as {.metadata.name} or .metadata.name", text)
	}
	path := "{." + m[1] + m[2] + "}"
	return path, checkTemplate(path)
}

// checkTemplate returns why a JSONPath template cannot be used.
func checkTemplate(template string) error {
	if err := jsonpath.New("template").Parse(template); err != nil {
		return fmt.Errorf("invalid JSONPath %q: %w", template, err)
	}
	return nil
}

// printTemplate writes what a template makes of a document, as kubectl does: fields that are
// missing are empty, and there is no newline at the end.
func printTemplate(out io.Writer, template string, doc []byte) error {
	value, err := readDocument(doc)
	if err != nil {
		return err
	}
	path := jsonpath.New("template").AllowMissingKeys(true)
	if err := path.Parse(template); err != nil {
		return err
	}
	if err := path.Execute(out, value); err != nil {
		return fmt.Errorf("-o jsonpath: %w", err)
	}
	return nil
}

// find returns the first value at a path of onePath; nil: there is none.
func find(path string, doc any) (any, error) {
	p := jsonpath.New("path").AllowMissingKeys(true)
	if err := p.Parse(path); err != nil {
		return nil, err
	}
	lists, err := p.FindResults(doc)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for _, list := range lists {
		for _, v := range list {
			if v.IsValid() && v.CanInterface() {
				return v.Interface(), nil
			}
		}
	}
	return nil, nil
}

// readDocument decodes JSON with whole numbers as int64, which print and compare as such.
func readDocument(doc []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("read what the server sent: %w", err)
	}
	return withNumbers(v), nil
}

func withNumbers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			v[k] = withNumbers(e)
		}
	case []any:
		for i, e := range v {
			v[i] = withNumbers(e)
		}
	case json.Number:
		if n, err := strconv.ParseInt(v.String(), 10, 64); err == nil {
			return n
		}
		f, _ := v.Float64() // out of range: infinite, as JSON itself has it
		return f
	}
	return v
}
