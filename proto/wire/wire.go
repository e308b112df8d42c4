// Package wire converts between proto and spec. Documents that users write or the
// store keeps travel as JSON in their stored form; only names and numbers that
// every message needs are fields.
package wire

import (
	"encoding/json"
	"fmt"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// Identity converts to the wire.
func Identity(id spec.Identity) *proto.Identity {
	return &proto.Identity{Namespace: string(id.Namespace), Set: string(id.Set), Ordinal: int32(id.Ordinal)}
}

// ToIdentity converts from the wire; nil is the zero identity.
func ToIdentity(p *proto.Identity) spec.Identity {
	return spec.Identity{
		Namespace: spec.Namespace(p.GetNamespace()),
		Set:       spec.SetName(p.GetSet()),
		Ordinal:   int(p.GetOrdinal()),
	}
}

// Token converts to the wire.
func Token(t spec.Token) *proto.Token { return &proto.Token{Epoch: t.Epoch, Number: t.Number} }

// ToToken converts from the wire; nil is the zero token.
func ToToken(p *proto.Token) spec.Token {
	return spec.Token{Epoch: p.GetEpoch(), Number: p.GetNumber()}
}

// Sequence converts to the wire.
func Sequence(s spec.Sequence) *proto.Sequence {
	return &proto.Sequence{Epoch: s.Epoch, Rev: s.Rev}
}

// ToSequence converts from the wire; nil is the zero sequence.
func ToSequence(p *proto.Sequence) spec.Sequence {
	return spec.Sequence{Epoch: p.GetEpoch(), Rev: p.GetRev()}
}

// Known converts to the wire; nodes and Stead's cluster id are left out.
func Known(k records.Known) *proto.Known {
	return &proto.Known{Origin: k.Origin, Term: k.Term, At: Sequence(k.At), Link: k.Link.Number, Nonce: k.Link.Nonce}
}

// ToKnown converts from the wire; nil knows nothing.
func ToKnown(p *proto.Known) records.Known {
	return records.Known{
		Origin: p.GetOrigin(), Term: p.GetTerm(), At: ToSequence(p.GetAt()),
		Link: records.Link{Number: p.GetLink(), Nonce: p.GetNonce()},
	}
}

// Documents marshals each item to JSON.
func Documents[T any](items []T) ([][]byte, error) {
	out := make([][]byte, 0, len(items))
	for i := range items {
		b, err := json.Marshal(&items[i])
		if err != nil {
			return nil, fmt.Errorf("encode %T: %w", items[i], err)
		}
		out = append(out, b)
	}
	return out, nil
}

// ToDocuments is the inverse of Documents. Unknown fields of a newer peer are ignored.
func ToDocuments[T any](docs [][]byte) ([]T, error) {
	out := make([]T, len(docs))
	for i, d := range docs {
		if err := json.Unmarshal(d, &out[i]); err != nil {
			return nil, fmt.Errorf("decode %T: %w", out[i], err)
		}
	}
	return out, nil
}
