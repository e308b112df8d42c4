#!/bin/sh
# Prints the fields that Kubernetes' objects have: kind, path and type, a line each, as Kubernetes' own
# Go types declare them (module k8s.io/api: v0.33 is Kubernetes 1.33). Needs go and the module proxy.
#
#	manifest/testdata/kubefields.sh v0.33.4 > manifest/testdata/fields-1.33.txt
set -e
version=${1:?which version of k8s.io/api, as v0.33.4}
dir=$(mktemp -d)
trap 'rm -r "$dir"' EXIT
cd "$dir"
cat > main.go <<'END'
package main

import (
	"fmt"
	"reflect"
	"strings"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func main() {
	for _, kind := range []any{apps.StatefulSet{}, core.Service{}, core.ConfigMap{}, core.Secret{},
		policy.PodDisruptionBudget{}, networking.NetworkPolicy{}, core.ResourceQuota{}, core.PersistentVolumeClaim{}, core.Endpoints{}, discovery.EndpointSlice{}} {
		t := reflect.TypeOf(kind)
		list(t.Name(), "", t)
	}
}

// list prints the fields of the struct t; of a status only that it is there.
func list(kind, path string, t reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" && (f.Anonymous || options == "inline") {
			list(kind, path, f.Type)
			continue
		}
		at := strings.TrimPrefix(path+"."+name, ".")
		inner := f.Type
		for inner.Kind() == reflect.Pointer || inner.Kind() == reflect.Slice {
			if inner.Kind() == reflect.Slice && !leaf(inner.Elem()) {
				at += "[]"
			}
			inner = inner.Elem()
		}
		fmt.Println(kind, at, typeName(f.Type))
		if !leaf(inner) && name != "status" {
			list(kind, at, inner)
		}
	}
}

// leaf: a value without fields of its own.
func leaf(t reflect.Type) bool {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t {
	case reflect.TypeFor[resource.Quantity](), reflect.TypeFor[intstr.IntOrString](), reflect.TypeFor[meta.Time](), reflect.TypeFor[meta.FieldsV1]():
		return true
	}
	return t.Kind() != reflect.Struct
}

func typeName(t reflect.Type) string {
	switch {
	case t.Kind() == reflect.Pointer:
		return typeName(t.Elem())
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		return "bytes"
	case t.Kind() == reflect.Slice:
		return "[]" + typeName(t.Elem())
	case t.Kind() == reflect.Map:
		return "map[" + typeName(t.Key()) + "]" + typeName(t.Elem())
	case t.Kind() == reflect.Struct:
		return t.Name()
	}
	return t.Kind().String()
}
END
go mod init kubefields
go get "k8s.io/api@$version" "k8s.io/apimachinery@$version"
go mod tidy
go run .
