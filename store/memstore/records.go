package memstore

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/stead-project/stead/store"
)

// checkRecord keeps the record of op, and panics where it, or that of old whose place it takes, is not what is stored.
func (s *Store) checkRecord(old *store.KV, op *store.Op) {
	if had := s.records[op.Key]; had != nil && !bytes.Equal(store.Encode(had), old.Value) {
		panic(fmt.Sprintf("the record at %s was changed after it was stored as %s", op.Key, old.Value))
	}
	delete(s.records, op.Key)
	if op.Delete || op.Record == nil {
		return
	}
	decoded := reflect.New(reflect.TypeOf(op.Record).Elem())
	if err := json.Unmarshal(op.Value, decoded.Interface()); err != nil {
		panic(fmt.Sprintf("decode what is written at %s: %v", op.Key, err))
	}
	if !reflect.DeepEqual(decoded.Interface(), op.Record) {
		panic(fmt.Sprintf("what is written at %s is decoded to %+v, and its record is %+v", op.Key, decoded.Elem(), reflect.ValueOf(op.Record).Elem()))
	}
	s.records[op.Key] = op.Record
}
