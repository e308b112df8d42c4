package trust

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
)

// Pin is the SHA-256 of an authority's public key: it names the authority to whoever
// has no certificate of it yet.
type Pin [sha256.Size]byte

// PinOf is the pin of an authority.
func PinOf(ca *x509.Certificate) Pin { return sha256.Sum256(ca.RawSubjectPublicKeyInfo) }

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
	for _, ca := range shown[1:] {
		if PinOf(ca) != p {
			continue
		}
		roots := x509.NewCertPool()
		roots.AddCert(ca)
		_, err := shown[0].Verify(x509.VerifyOptions{Roots: roots, DNSName: host, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
		if err != nil {
			return fmt.Errorf("the server is not what it says it is: %w", err)
		}
		return nil
	}
	return errors.New("the server does not belong to the cluster of this join token; nothing was sent to it")
}

// Host is that of an address, host:port.
func Host(address string) (string, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil || host == "" || port == "" {
		return "", fmt.Errorf("server %q: write host:port", address)
	}
	return host, nil
}
