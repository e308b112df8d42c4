// Package rotation decides what comes next when what all servers share is replaced by a new one: the key
// that seals, or the authority that signs. Each step is stored before the next is decided, so that whoever leads then
// continues. It is pure.
package rotation

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stead-project/stead/records/sealing"
)

// keptRemoved is how many removed keys are remembered.
const keptRemoved = 32

// KeyWorld is what a step of the rotation of a key is decided by.
type KeyWorld struct {
	Ring *sealing.Ring // nil: none was ever rotated
	// Servers are all that are known of, and Said which keys each said that it has.
	Servers []string
	Said    map[string][]sealing.KeyID
	// Settled: servers of which the store knows nothing had time to say what they have.
	Settled bool
	// Under is how many records are sealed with each key, "" being none of this server's; nil: not looked yet.
	Under map[sealing.KeyID]int
}

// KeyStep is what comes next; none of it is set when nothing does.
type KeyStep struct {
	// Write is the keyring's next record.
	Write *sealing.Ring
	// Look: count what is sealed with which key. Reseal: seal anew what is under others than the one that seals.
	Look, Reseal bool
	// Wait says what is waited for.
	Wait string
}

// NextKeys decides the next step. A key seals only when all servers that are known have it; and what was before only
// opens, and is kept, until a person removes it.
func NextKeys(k KeyWorld) KeyStep {
	switch {
	case k.Ring == nil:
		return KeyStep{}
	case k.Ring.Next != "":
		if lacking := k.Lacking(k.Ring.Next); len(lacking) > 0 {
			return KeyStep{Wait: fmt.Sprintf("the new key %s waits for %s: start them, or, if one is gone for good, run 'stead keyring rotate --without NAME'",
				k.Ring.Next, strings.Join(lacking, ", "))}
		}
		if !k.Settled {
			return KeyStep{Wait: "servers that are not known yet have a moment to say which keys they have"}
		}
		next := *k.Ring
		next.Opening = append([]sealing.KeyID{next.Sealing}, next.Opening...)
		next.Sealing, next.Next, next.Resealing = next.Next, "", true
		return KeyStep{Write: &next}
	case k.Ring.Resealing && k.Under == nil:
		return KeyStep{Look: true}
	case k.Ring.Resealing:
		others := 0
		for id, n := range k.Under {
			if id != k.Ring.Sealing && id != "" {
				others += n
			}
		}
		switch {
		case others > 0:
			return KeyStep{Reseal: true}
		case k.Under[""] > 0:
			return KeyStep{Wait: fmt.Sprintf("%d records are sealed with a key that this server lacks: bring its secret.key back, or delete these Secrets", k.Under[""])}
		}
		next := *k.Ring
		next.Resealing = false
		return KeyStep{Write: &next}
	}
	return KeyStep{}
}

// Lacking are the servers that have not said that they have id, but for those that are not waited for.
func (k KeyWorld) Lacking(id sealing.KeyID) []string {
	var out []string
	for _, s := range k.Servers {
		if !slices.Contains(k.Said[s], id) && !slices.Contains(k.Ring.Without, s) {
			out = append(out, s)
		}
	}
	return out
}

// RemoveKey is the keyring without id, or why that may not be. Under must have been counted at the keyring's present record:
// whatever is written later is sealed with the key that seals.
func RemoveKey(k KeyWorld, id sealing.KeyID) (*sealing.Ring, error) {
	switch {
	case k.Ring == nil:
		return nil, fmt.Errorf("the key was never rotated; 'stead keyring rotate' makes another first")
	case k.Ring.Sealing == id:
		return nil, fmt.Errorf("%s is the key that seals; 'stead keyring rotate' makes another first", id)
	case k.Ring.Next != "" || k.Ring.Resealing:
		return nil, fmt.Errorf("a rotation is under way; see 'stead keyring ls'")
	case k.Under[id] > 0:
		return nil, fmt.Errorf("%d records are sealed with %s; run 'stead keyring rotate', which seals them with a new key", k.Under[id], id)
	case k.Under[""] > 0:
		return nil, fmt.Errorf("%d records are sealed with a key that this server lacks, which may be %s: delete these Secrets, or bring the key back", k.Under[""], id)
	case slices.Contains(k.Ring.Removed, id):
		return nil, nil
	}
	has := slices.Contains(k.Ring.Opening, id)
	for _, ids := range k.Said {
		has = has || slices.Contains(ids, id)
	}
	if !has {
		return nil, fmt.Errorf("no server has a key %s; see 'stead keyring ls'", id)
	}
	next := *k.Ring
	next.Opening = slices.DeleteFunc(slices.Clone(next.Opening), func(o sealing.KeyID) bool { return o == id })
	next.Removed = append(slices.Clone(next.Removed), id)
	next.Removed = next.Removed[max(0, len(next.Removed)-keptRemoved):]
	return &next, nil
}

// Rotate is the keyring by which id comes to seal, without waiting for some servers. present seals until then. A rotation
// that waits is begun again with id if no server has its key.
func Rotate(k KeyWorld, present, id sealing.KeyID, without []string) (*sealing.Ring, error) {
	next := sealing.Ring{Sealing: present}
	if k.Ring != nil {
		next = *k.Ring
	}
	if next.Resealing || next.Next != "" && len(k.having(next.Next)) > 0 {
		return nil, fmt.Errorf("a rotation is under way; see 'stead keyring ls'")
	}
	next.Next, next.Without = id, without
	return &next, nil
}

// Without is the keyring of the rotation that waits, which goes on without these servers, too; false: none does.
func Without(k KeyWorld, without []string) (*sealing.Ring, bool) {
	if k.Ring == nil || k.Ring.Next == "" || len(without) == 0 || len(k.having(k.Ring.Next)) == 0 {
		return nil, false
	}
	next := *k.Ring
	next.Without = slices.Compact(slices.Sorted(slices.Values(append(slices.Clone(next.Without), without...))))
	return &next, true
}

// having are the servers that said that they have id.
func (k KeyWorld) having(id sealing.KeyID) []string {
	var out []string
	for _, s := range k.Servers {
		if slices.Contains(k.Said[s], id) {
			out = append(out, s)
		}
	}
	return out
}

// OwnKeys is what a server does about its own keys.
type OwnKeys struct {
	Ring *sealing.Ring
	Has  []sealing.KeyID
}

// Missing are keys that it should have and lacks.
func (o OwnKeys) Missing() []sealing.KeyID {
	if o.Ring == nil {
		return nil
	}
	return slices.DeleteFunc(o.Ring.Wanted(), func(id sealing.KeyID) bool { return slices.Contains(o.Has, id) })
}

// Drop are keys to forget: removed ones, once it has the key that seals.
func (o OwnKeys) Drop() []sealing.KeyID {
	if o.Ring == nil || !slices.Contains(o.Has, o.Ring.Sealing) {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(o.Has), func(id sealing.KeyID) bool {
		return !slices.Contains(o.Ring.Removed, id) || slices.Contains(o.Ring.Wanted(), id)
	})
}
