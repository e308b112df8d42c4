package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/stead-project/stead/records"
)

// Format is the highest format of a store that this program knows. It rises with each release that stores what the
// release before must not pass over.
const Format = 2

// sinceFormat are the kinds of keys that servers of lower formats pass over, and must not: where there is one they would
// start what is held, or take the store for theirs alone.
var sinceFormat = map[string]struct {
	format int
	why    string
}{
	KindMove:        {2, "a volume was moved"},
	KindMoveRequest: {2, "a volume was moved"},
	KindServer:      {2, "servers share the store"},
	KindQuota:       {2, "a namespace has a ResourceQuota"},
	KindKeyring:     {2, "the key of Secrets was rotated"},
	KindJobs:        {2, "a set has jobs"},
}

// differing is what the stored form of a set has whose members differ from the template (spec.members): a server that passes over it
// would start them without. It stands nowhere else in it: quotes in names and values are escaped.
const differing = `"members":[`

// inPlace is what the stored form of a set has whose members change in place (updateStrategy.inPlace): a server that passes over it would take what
// a member runs for what it ran before.
const inPlace = `"inPlace":[`

// formatOf is the format that op needs; the zero one: any.
func formatOf(op Op) records.Format {
	kind, _ := Kind(op.Key)
	since := sinceFormat[kind]
	switch {
	case op.Delete:
		return records.Format{}
	case kind == KindSet && bytes.Contains(op.Value, []byte(differing)):
		return records.Format{Lowest: 2, Why: "members of a set differ"}
	case kind == KindSet && bytes.Contains(op.Value, []byte(inPlace)):
		return records.Format{Lowest: 2, Why: "members of a set change in place"}
	}
	return records.Format{Lowest: since.format, Why: since.why}
}

// AuthorityFormat is the format of a store in which another authority signs than the servers show.
var AuthorityFormat = records.Format{Lowest: 2, Why: "the authority was rotated"}

// ErrFormat: the store is of a later release.
var ErrFormat = errors.New("later release")

// CheckFormat returns an error that is ErrFormat if a program that knows formats up to known may not use the store of
// which kvs has FormatKey, if it is there.
func CheckFormat(kvs map[string]KV, known int) error {
	f, err := DecodeIn[records.Format](kvs, FormatKey)
	if err != nil {
		return err
	}
	if why := f.Refusal(known); why != "" {
		return fmt.Errorf("%w: %s", ErrFormat, why)
	}
	return nil
}

// Formatted is a store in which FormatKey says which servers may use it: a transaction that is the first to write what
// others must know raises it, so that there is never one without the other.
type Formatted struct {
	Store
	raised atomic.Int64 // the key is known to have at least this; 0: it was not looked at
}

// NewFormatted returns s, which no other writer of this process uses without it.
func NewFormatted(s Store) *Formatted { return &Formatted{Store: s} }

// Commit implements Store. The first transaction of a new kind has an operation and a compare more: it is one of few, a
// request or a server's record.
func (f *Formatted) Commit(ctx context.Context, t Txn) (Rev, error) {
	want := records.Format{}
	for _, op := range t.Then {
		if f := formatOf(op); f.Lowest > want.Lowest {
			want = f
		}
	}
	if int64(want.Lowest) <= f.raised.Load() {
		return f.Store.Commit(ctx, t)
	}
	t, err := RaiseFormat(ctx, f.Store, t, want)
	if err != nil {
		return 0, err
	}
	rev, err := f.Store.Commit(ctx, t)
	if err == nil {
		f.raised.Store(int64(want.Lowest))
	}
	return rev, err
}

// RaiseFormat is t, by which FormatKey also has at least the format want.
func RaiseFormat(ctx context.Context, s Store, t Txn, want records.Format) (Txn, error) {
	_, kvs, err := s.Get(ctx, FormatKey)
	if err != nil {
		return t, err
	}
	now, err := DecodeIn[records.Format](kvs, FormatKey)
	if err != nil {
		return t, err
	}
	if now == nil || now.Lowest < want.Lowest {
		t.If = append(t.If[:len(t.If):len(t.If)], Seen(FormatKey, kvs[FormatKey].Mod))
		t.Then = append(t.Then[:len(t.Then):len(t.Then)], Put(FormatKey, Encode(want)))
	}
	return t, nil
}
