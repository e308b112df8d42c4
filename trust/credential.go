package trust

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/stead-project/stead/internal/durable"
	"github.com/stead-project/stead/spec/scalar"
)

// Credential is all that a node or a person's program needs to speak with servers. It
// is kept in one file, so that key and certificate always belong together.
type Credential struct {
	Servers []string `json:"servers"` // host:port
	// CA and Certificate are DER; none before somebody gave them.
	CA          []byte `json:"ca,omitempty"`
	Certificate []byte `json:"certificate,omitempty"`
	// Key is PKCS #8; it never leaves the machine that made it, and is never printed.
	Key scalar.Bytes `json:"key"`
	// JoinedBy is the id of the join token that a node came in by; "" for clients.
	JoinedBy string `json:"joinedBy,omitempty"`
}

// NewCredential makes a key; it is not signed yet.
func NewCredential(servers []string) (*Credential, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make key: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("make key: %w", err)
	}
	return &Credential{Servers: servers, Key: der}, nil
}

func (c *Credential) key() (*ecdsa.PrivateKey, error) {
	key, err := x509.ParsePKCS8PrivateKey(c.Key)
	if k, ok := key.(*ecdsa.PrivateKey); err == nil && ok {
		return k, nil
	}
	return nil, errors.New("the credential holds no key")
}

// Request asks for a certificate of the key: PKCS #10, DER. It names nobody, for whom a
// certificate names is not for its holder to say.
func (c *Credential) Request() ([]byte, error) {
	key, err := c.key()
	if err != nil {
		return nil, err
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		return nil, fmt.Errorf("ask for a certificate: %w", err)
	}
	return der, nil
}

// Take puts in what an authority gave, if it is a certificate of the key.
func (c *Credential) Take(certificate, ca []byte) error {
	key, err := c.key()
	if err != nil {
		return err
	}
	leaf, err := x509.ParseCertificate(certificate)
	if err != nil {
		return fmt.Errorf("read certificate: %w", err)
	}
	if public, ok := leaf.PublicKey.(*ecdsa.PublicKey); !ok || !public.Equal(key.Public()) {
		return errors.New("the certificate is of another key")
	}
	if _, err := x509.ParseCertificate(ca); err != nil {
		return fmt.Errorf("read the authority's certificate: %w", err)
	}
	c.Certificate, c.CA = certificate, ca
	return nil
}

// Subject is whom the certificate names.
func (c *Credential) Subject() (Subject, error) {
	leaf, err := x509.ParseCertificate(c.Certificate)
	if err != nil {
		return Subject{}, fmt.Errorf("read certificate: %w", err)
	}
	return SubjectOf(leaf)
}

// TLS is for a connection to the server at address, host:port.
func (c *Credential) TLS(address string) (*tls.Config, error) {
	host, err := Host(address)
	if err != nil {
		return nil, err
	}
	key, err := c.key()
	if err != nil {
		return nil, err
	}
	ca, err := x509.ParseCertificate(c.CA)
	if err != nil {
		return nil, fmt.Errorf("read the authority's certificate: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(ca)
	return &tls.Config{
		MinVersion: tls.VersionTLS13, ServerName: host, RootCAs: roots,
		Certificates: []tls.Certificate{{Certificate: [][]byte{c.Certificate}, PrivateKey: key}},
	}, nil
}

// Foreign reports whether a connection failed because one side's certificate is not of an authority that the other knows.
func Foreign(err error) bool {
	if _, unknown := errors.AsType[x509.UnknownAuthorityError](err); unknown {
		return true
	}
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); ok { // known by the one that was replaced alone, below which nothing may sign
		return invalid.Reason == x509.TooManyIntermediates
	}
	alert, refused := errors.AsType[tls.AlertError](err)
	if op, ok := errors.AsType[*net.OpError](err); ok && !refused { // what the other side sends is a type of crypto/tls alone
		return op.Op == "remote error" && op.Err.Error() == unknownCA.Error()
	}
	return refused && alert == unknownCA
}

// unknownCA is the alert of TLS 1.3 for a certificate of an authority that is not known.
const unknownCA = tls.AlertError(48)

// Load reads the credential kept at path. Errors: fs.ErrNotExist; others when anybody
// but its owner may read it, or when it is none.
func Load(path string) (*Credential, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%s holds a key and is open to others (%04o); write chmod 0600", path, info.Mode().Perm())
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	c := &Credential{}
	if err := json.Unmarshal(b, c); err != nil {
		return nil, fmt.Errorf("%s is not a Stead credential file", path)
	}
	if _, err := c.key(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// Save puts c at path, whole or not at all, for its owner only, and returns when it is
// on disk. The directory must be there.
func (c *Credential) Save(path string) error {
	b, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: it cannot be encoded", path)
	}
	return durable.Put(path, append(b, '\n'), 0o600)
}
