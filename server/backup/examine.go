package backup

import (
	"errors"
	"strconv"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/sealing"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/seal"
	"github.com/stead-project/stead/store"
)

// Snapshots goes through a snapshot of the store, as etcdembed.Check does, and returns its revision.
type Snapshots func(file string, each func(store.KV) error) (rev int64, err error)

// Content is what a snapshot of the store holds.
type Content struct {
	Cluster string
	Epoch   int64
	Rev     int64
	Held    string
	Kinds   map[string]int
	// Unreadable are the first few records that a server of this version cannot read, of Bad.
	Unreadable []error
	Bad        int
	// Sealed is how many records are sealed.
	Sealed int
}

// shownBad is how many unreadable records are named.
const shownBad = 5

// Examine reads a whole snapshot, each record as a server would; with a key (nil: none) it opens what is sealed. The
// error is of a file that is no store, or not Stead's.
func Examine(read Snapshots, file string, key *seal.Key) (c Content, err error) {
	c.Kinds = map[string]int{}
	c.Rev, err = read(file, func(kv store.KV) error {
		kind, _ := store.Kind(kv.Key)
		c.Kinds[kind]++
		if err := c.take(kind, kv, key); err != nil {
			c.Bad++
			if len(c.Unreadable) < shownBad {
				c.Unreadable = append(c.Unreadable, err)
			}
		}
		return nil
	})
	if err == nil && (c.Cluster == "" || c.Epoch < 1) {
		err = errors.New("it is a store without Stead's records")
	}
	return c, err
}

func (c *Content) take(kind string, kv store.KV, key *seal.Key) (err error) {
	switch kind {
	case store.KindCluster:
		c.Cluster = string(kv.Value)
	case store.KindEpoch:
		c.Epoch, err = strconv.ParseInt(string(kv.Value), 10, 64)
	case store.KindHold:
		c.Held = store.HoldIn(map[string]store.KV{store.HoldKey: kv}).Cause
	case store.KindContinuity:
		_, err = store.Decode[records.Chain](kv)
	case store.KindToken:
		_, err = store.Decode[records.JoinToken](kv)
	case store.KindRevoked:
		_, err = store.Decode[records.Revoked](kv)
	case store.KindAuthority:
		c.Sealed++
		var record sealing.Authority
		if record, err = store.Decode[sealing.Authority](kv); err == nil && key != nil {
			_, err = key.OpenAt(kv.Key, record.Sealed)
			if err == nil && record.Next != nil {
				_, err = key.OpenAt(kv.Key, record.Next.Sealed)
			}
		}
	case store.KindSecret:
		c.Sealed++
		var record records.SecretRecord
		if record, err = store.Decode[records.SecretRecord](kv); err == nil && key != nil {
			_, err = key.Open(&record)
		}
	}
	if err == nil {
		err = cache.CheckRecord(kv)
	}
	return err
}
