package trust

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
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
func NewJoinToken(pin Pin) JoinToken {
	random := make([]byte, 6+secretBytes)
	_, _ = rand.Read(random) // never fails: see crypto/rand
	return JoinToken{ID: hex.EncodeToString(random[:6]), Secret: random[6:], Pin: pin}
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

// Pin is the SHA-256 of an authority's public key: it names the authority to whoever
// has no certificate of it yet.
type Pin [sha256.Size]byte

// PinOf is the pin of an authority.
func PinOf(ca *x509.Certificate) Pin { return sha256.Sum256(ca.RawSubjectPublicKeyInfo) }

// Short is an id of the authority for people.
func (p Pin) Short() string { return hex.EncodeToString(p[:6]) }

// ShortID is that of the authority whose certificate (DER) it is; "": it is none.
func ShortID(certificate []byte) string {
	ca, err := x509.ParseCertificate(certificate)
	if err != nil {
		return ""
	}
	return PinOf(ca).Short()
}

// TLS is for a connection of somebody without a certificate to a server at host. The
// handshake fails unless the server shows a certificate for host by the authority p
// names; before it is over nothing is sent.
func (p Pin) TLS(host string) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, ServerName: host,
		InsecureSkipVerify: true, // VerifyConnection does it, with the authority that the pin names
		VerifyConnection:   func(state tls.ConnectionState) error { return p.verify(state.PeerCertificates, host) },
	}
}

func (p Pin) verify(shown []*x509.Certificate, host string) error {
	if len(shown) == 0 {
		return errors.New("the server shows no certificate")
	}
	others := x509.NewCertPool() // by which the server may be known to p
	for _, c := range shown[1:] {
		others.AddCert(c)
	}
	for _, ca := range shown[1:] {
		if PinOf(ca) != p {
			continue
		}
		roots := x509.NewCertPool()
		roots.AddCert(ca)
		_, err := shown[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: others, DNSName: host, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
		if err != nil {
			return fmt.Errorf("the server is not what it says it is: %w", err)
		}
		return nil
	}
	return errors.New("the server does not belong to the cluster of this join token, or its authority was replaced since the token was made; nothing was sent to it")
}

// Host is that of an address, host:port.
func Host(address string) (string, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil || host == "" || port == "" {
		return "", fmt.Errorf("server %q: write host:port", address)
	}
	return host, nil
}
