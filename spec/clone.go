package spec

import "reflect"

// Clone returns a deep copy of v: it shares no map, slice or pointer with it.
// Unexported fields (those of times and addresses) are copied as they are.
func Clone[T any](v T) T {
	out := reflect.New(reflect.TypeFor[T]()).Elem()
	copyInto(out, reflect.ValueOf(&v).Elem())
	return out.Interface().(T)
}

func copyInto(to, from reflect.Value) {
	to.Set(from)
	switch from.Kind() {
	case reflect.Pointer, reflect.Interface:
		if from.IsNil() {
			return
		}
		inner := reflect.New(from.Elem().Type())
		copyInto(inner.Elem(), from.Elem())
		if from.Kind() == reflect.Interface {
			inner = inner.Elem()
		}
		to.Set(inner)
	case reflect.Slice:
		if from.IsNil() {
			return
		}
		to.Set(reflect.MakeSlice(from.Type(), from.Len(), from.Len()))
		for i := range from.Len() {
			copyInto(to.Index(i), from.Index(i))
		}
	case reflect.Map:
		if from.IsNil() {
			return
		}
		to.Set(reflect.MakeMapWithSize(from.Type(), from.Len()))
		for key, value := range from.Seq2() {
			item := reflect.New(value.Type()).Elem()
			copyInto(item, value)
			to.SetMapIndex(key, item)
		}
	case reflect.Struct:
		for i := range from.NumField() {
			if from.Type().Field(i).IsExported() {
				copyInto(to.Field(i), from.Field(i))
			}
		}
	}
}
