package spec

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

type (
	// Namespace is a DNS-1123 label; namespaces need no creation. Default "default".
	Namespace string
	// SetName is a DNS-1123 label, unique in its namespace.
	SetName string
	// NodeName names a host; DNS-1123 subdomain.
	NodeName string
	// UID identifies one creation of a set or node for ever; 32 hex digits.
	UID string
	// ClaimName names a volumeClaimTemplate of a set, DNS-1123 label, or, with a
	// ClaimIdentity, a PersistentVolumeClaim, DNS-1123 subdomain.
	ClaimName string
	// RevisionHash names a template by its canonical hash (see HashTemplate).
	RevisionHash string
	// SessionID is the lease id of a node's live connection; 0: none.
	SessionID int64
	// BootID is the kernel's boot id of a node (injectable in tests).
	BootID string
)

// DefaultNamespace is used where a manifest or command names none.
const DefaultNamespace Namespace = "default"

// SetRef names a set.
type SetRef struct {
	Namespace Namespace `json:"namespace"`
	Name      SetName   `json:"name"`
}

// String is "namespace/name".
func (r SetRef) String() string { return string(r.Namespace) + "/" + string(r.Name) }

// Compare orders sets by namespace, then name.
func (r SetRef) Compare(o SetRef) int {
	return cmp.Or(cmp.Compare(r.Namespace, o.Namespace), cmp.Compare(r.Name, o.Name))
}

// Identity is (namespace, set, ordinal): a key that never moves. db-0 of the
// namespace default is {default, db, 0}. Ordinal is 0..2147483647.
type Identity struct {
	Namespace Namespace `json:"namespace"`
	Set       SetName   `json:"set"`
	Ordinal   int       `json:"ordinal"`
}

// Ref is the set the identity belongs to.
func (i Identity) Ref() SetRef { return SetRef{i.Namespace, i.Set} }

// MemberName is "<set>-<ordinal>", the member's hostname; of a ClaimIdentity the claim's name.
func (i Identity) MemberName() string {
	if claim, is := i.Ref().ClaimName(); is {
		return claim
	}
	return string(i.Set) + "-" + strconv.Itoa(i.Ordinal)
}

// String is "namespace/set-ordinal".
func (i Identity) String() string { return string(i.Namespace) + "/" + i.MemberName() }

// Compare orders identities by set, then ordinal.
func (i Identity) Compare(o Identity) int {
	return cmp.Or(i.Ref().Compare(o.Ref()), cmp.Compare(i.Ordinal, o.Ordinal))
}

// ParseMemberName splits "db-0" strictly: no leading zeros, int32 range.
func ParseMemberName(name string) (SetName, int, error) {
	cut := strings.LastIndexByte(name, '-')
	if cut <= 0 || cut == len(name)-1 {
		return "", 0, fmt.Errorf("%q is not a member name; write <set>-<ordinal>, as in db-0", name)
	}
	digits := name[cut+1:]
	n, err := strconv.ParseInt(digits, 10, 32)
	if err != nil || n < 0 || strconv.FormatInt(n, 10) != digits {
		return "", 0, fmt.Errorf("%q is not a member name: %q is not an ordinal", name, digits)
	}
	return SetName(name[:cut]), int(n), nil
}

// Token names one life of an identity: the fencing token. It grows and is never
// reused. Epoch compares first. The zero Token means "no life".
type Token struct {
	Epoch  int64 `json:"epoch"`
	Number int64 `json:"number"`
}

// IsZero reports whether t names no life.
func (t Token) IsZero() bool { return t == Token{} }

// Compare orders tokens by epoch, then number.
func (t Token) Compare(o Token) int {
	return cmp.Or(cmp.Compare(t.Epoch, o.Epoch), cmp.Compare(t.Number, o.Number))
}

// String is "epoch.number".
func (t Token) String() string {
	return strconv.FormatInt(t.Epoch, 10) + "." + strconv.FormatInt(t.Number, 10)
}

// ParseToken is the inverse of Token.String.
func ParseToken(s string) (Token, error) {
	e, n, ok := strings.Cut(s, ".")
	epoch, err1 := strconv.ParseInt(e, 10, 64)
	number, err2 := strconv.ParseInt(n, 10, 64)
	if !ok || err1 != nil || err2 != nil || epoch < 0 || number < 0 {
		return Token{}, fmt.Errorf("%q is not a token; want epoch.number", s)
	}
	return Token{epoch, number}, nil
}

// LifeID names one life: an identity and the token it runs under.
type LifeID struct {
	ID    Identity `json:"id"`
	Token Token    `json:"token"`
}

// Sequence orders what is told to nodes and members: (epoch, store revision).
// A receiver never goes back.
type Sequence struct {
	Epoch int64 `json:"epoch"`
	Rev   int64 `json:"rev"`
}

// Compare orders sequences by epoch, then revision.
func (s Sequence) Compare(o Sequence) int {
	return cmp.Or(cmp.Compare(s.Epoch, o.Epoch), cmp.Compare(s.Rev, o.Rev))
}
