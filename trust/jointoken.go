package trust

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// secretBytes is the length of a join token's secret.
const secretBytes = 32

// JoinToken lets one machine join, once. It names the authority it is for, so that
// its secret is told to no other. It shows neither when printed or logged.
type JoinToken struct {
	ID     string
	Secret []byte
	Pin    Pin
}

var tokenID = regexp.MustCompile(`^[0-9a-f]{12}$`)

// ValidTokenID tells whether id could be a join token's.
func ValidTokenID(id string) bool { return tokenID.MatchString(id) }

// NewJoinToken makes one with a random id and secret.
func NewJoinToken(pin Pin) (JoinToken, error) {
	random := make([]byte, 6+secretBytes)
	if _, err := rand.Read(random); err != nil {
		return JoinToken{}, fmt.Errorf("make join token: %w", err)
	}
	return JoinToken{ID: hex.EncodeToString(random[:6]), Secret: random[6:], Pin: pin}, nil
}

// Text is the token as it is carried to the machine: <id>.<secret>.<pin>.
func (t JoinToken) Text() string {
	return t.ID + "." + base64.RawURLEncoding.EncodeToString(t.Secret) + "." + base64.RawURLEncoding.EncodeToString(t.Pin[:])
}

// String hides the secret.
func (t JoinToken) String() string { return "[join token " + t.ID + "]" }

// GoString hides the secret.
func (t JoinToken) GoString() string { return t.String() }

// ParseJoinToken reads what Text gave. The error shows nothing of it.
func ParseJoinToken(text string) (JoinToken, error) {
	bad := errors.New("not a join token; make one with 'stead token create'")
	parts := strings.Split(strings.TrimSpace(text), ".")
	if len(parts) != 3 || !ValidTokenID(parts[0]) {
		return JoinToken{}, bad
	}
	secret, err := base64.RawURLEncoding.DecodeString(parts[1])
	pin, err2 := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil || err2 != nil || len(secret) != secretBytes || len(pin) != sha256.Size {
		return JoinToken{}, bad
	}
	return JoinToken{ID: parts[0], Secret: secret, Pin: Pin(pin)}, nil
}
