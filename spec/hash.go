package spec

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/stead-project/stead/spec/scalar"
)

// HashVersion names the canonical form that HashTemplate hashes. Version 1:
//
//   - a template is an object of its fields by their JSON names; fields that are
//     absent, zero, or equal to their default are left out, so a field or default
//     added later changes no hash; order of fields does not matter
//   - labels and annotations of the template are part of it; its name and
//     namespace, which change nothing, are not
//   - a field that is a pointer keeps a zero ("runAsUser: 0" is not "absent"), an
//     entry of a map or list is always kept, and lists keep their order
//   - quantities are their number of thousandths, other values their JSON form
//   - hashed is SHA-256 of "stead template 1\n" and the JSON with sorted keys; the
//     name is its first 64 bits in the ten lowest digits of base 27
//
// Version 2 is the same but for allowPrivilegeEscalation: false is said, which version 1 left
// out as the default, and true is not. A revision that was named by version 1 keeps its name
// (records.Set.RevisionHash).
const HashVersion = 2

// hashAlphabet has no vowels and nothing that looks like another: no words arise.
const hashAlphabet = "bcdfghjklmnpqrstvwxz2456789"

// HashLength is the length of a RevisionHash.
const HashLength = 10

// HashTemplate names t by its canonical form: 10 characters of a safe alphabet.
// Templates that mean the same have the same hash, now and in later versions of
// Stead. Different ones may, hardly ever, share one: see SameTemplate. t is not changed.
func HashTemplate(t Template) RevisionHash {
	return hashOf(canonicalTemplate(t))
}

// Again is another name for the template that is named h, where an older version gave that
// name to another template.
func (h RevisionHash) Again() RevisionHash { return hashOf([]byte("again " + h)) }

func hashOf(text []byte) RevisionHash {
	sum := sha256.Sum256(text)
	rest := binary.BigEndian.Uint64(sum[:8])
	name := make([]byte, HashLength)
	for i := range name {
		name[i] = hashAlphabet[rest%uint64(len(hashAlphabet))]
		rest /= uint64(len(hashAlphabet))
	}
	return RevisionHash(name)
}

// SameTemplate reports whether a and b mean the same. It tells a collision of
// hashes from a revision that is already there.
func SameTemplate(a, b Template) bool {
	return string(canonicalTemplate(a)) == string(canonicalTemplate(b))
}

func canonicalTemplate(t Template) []byte {
	t = Clone(t)
	defaulter{clear: true}.template(&t)
	return append([]byte("stead template 1\n"), canonicalJSON(t)...)
}

// canonicalJSON is equal for values that differ only in absent and zero fields.
func canonicalJSON(v any) []byte {
	b, err := json.Marshal(canonical(v))
	if err != nil {
		panic(fmt.Sprintf("canonical form of %T: %v", v, err)) // maps, lists and scalars only
	}
	return b
}

// canonical is v as maps, lists and scalars, without what is absent.
func canonical(v any) any { return canonicalValue(reflect.ValueOf(v)) }

func canonicalValue(v reflect.Value) any {
	switch v.Kind() {
	case reflect.Invalid: // behind a nil
		return nil
	case reflect.Pointer, reflect.Interface:
		return canonicalValue(v.Elem())
	case reflect.Slice:
		list := make([]any, v.Len())
		for i := range list {
			list[i] = canonicalValue(v.Index(i))
		}
		return list
	case reflect.Map:
		fields := make(map[string]any, v.Len())
		for key, value := range v.Seq2() {
			fields[key.String()] = canonicalValue(value)
		}
		return fields
	case reflect.Struct:
		return canonicalStruct(v)
	}
	return v.Interface()
}

// canonicalStruct is nil when nothing is left of v.
func canonicalStruct(v reflect.Value) any {
	switch value := v.Interface().(type) {
	case scalar.Quantity:
		return value.Milli
	case json.Marshaler:
		return value
	}
	var fields map[string]any
	for i := range v.NumField() {
		f := v.Field(i)
		if f.IsZero() || (f.Kind() == reflect.Map || f.Kind() == reflect.Slice) && f.Len() == 0 {
			continue
		}
		item := canonicalValue(f)
		if left, isStruct := item.(map[string]any); isStruct && f.Kind() == reflect.Struct && left == nil {
			continue
		}
		if fields == nil {
			fields = map[string]any{}
		}
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		fields[name] = item
	}
	return fields
}

// saysNothing reports whether every field of the struct v is absent.
func saysNothing(v any) bool {
	fields, isStruct := canonical(v).(map[string]any)
	return isStruct && fields == nil
}

// Same reports whether a and b mean the same: absent and zero fields are equal.
func Same[T any](a, b T) bool { return bytes.Equal(canonicalJSON(a), canonicalJSON(b)) }
