package store

import (
	"fmt"

	"github.com/stead-project/stead/records"
)

// NotHeld is what a transaction compares that begins, ends, places, frees or gives up
// lives, volumes or addresses, and each by which a person asks for that: while HoldKey
// exists, what this store says may not be so (SAFETY S8).
func NotHeld() Compare { return Absent(HoldKey) }

// HoldIn is the hold among what was read; nil: there is none. One that cannot be read holds
// as well.
func HoldIn(kvs map[string]KV) *records.Hold {
	kv, ok := kvs[HoldKey]
	if !ok {
		return nil
	}
	hold, err := Decode[records.Hold](kv)
	if err != nil {
		return &records.Hold{Cause: fmt.Sprintf("the store has a key %q, which cannot be read", HoldKey), By: "this server"}
	}
	return &hold
}
