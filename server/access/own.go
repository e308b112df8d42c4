package access

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/stead-project/stead/trust"
)

// own makes certificates of this server. It is safe for concurrent use.
type own struct {
	life time.Duration
	make func(*standing) (*tls.Certificate, error)

	mu   sync.Mutex
	cert *tls.Certificate // nil: not made yet
	made time.Time
	of   *standing
}

// at is the certificate as s stands, replaced, with a new key, after two thirds of its
// life (on the monotonic clock, and should the host have slept, on the other), and when s is another.
func (o *own) at(s *standing) (*tls.Certificate, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.cert != nil && o.of == s && time.Since(o.made) < o.life*2/3 && time.Until(o.cert.Leaf.NotAfter) > o.life/3 {
		return o.cert, nil
	}
	made := time.Now()
	c, err := o.make(s)
	if err != nil {
		return nil, fmt.Errorf("sign the server's certificate: %w", err)
	}
	o.cert, o.made, o.of = c, made, s
	return c, nil
}

// ownCertificates are those of this server: serving, by which others know it, with all by which they may know who signed it; and
// calling, by which it calls others.
func (a *Authority) ownCertificates() (serving, calling *own) {
	serving = &own{life: a.cfg.Life, make: func(s *standing) (*tls.Certificate, error) {
		c, err := a.sign(s.now)
		if err != nil {
			return nil, err
		}
		if s.next != nil { // as short-lived as the other: who has the key of a retired authority shall not use it for long
			der, err := s.next.bridge(s.now.cert, newTemplate(a.cfg.Life))
			if err != nil {
				return nil, err
			}
			c.Certificate = append(c.Certificate, der, s.next.cert.Raw)
		}
		if s.bridge != nil {
			c.Certificate = append(c.Certificate, s.bridge.Raw)
		}
		return c, nil
	}}
	return serving, &own{life: a.cfg.Life, make: func(s *standing) (*tls.Certificate, error) { return a.sign(s.signs()) }}
}

func (a *Authority) sign(by signer) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := newTemplate(a.cfg.Life)
	template.URIs = []*url.URL{trust.Subject{Cluster: a.cluster, Role: trust.RoleServer, Name: a.cfg.Server}.URL()}
	at := a.cfg.Addresses
	if a.cfg.Peer != "" {
		at = append(slices.Clone(at), a.cfg.Peer)
	}
	for _, address := range at {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	template.KeyUsage, template.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	der, err := x509.CreateCertificate(rand.Reader, template, by.cert, key.Public(), by.key)
	if err != nil {
		return nil, err
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	// The authority is shown, too: whoever has only its pin knows it by that.
	return &tls.Certificate{Certificate: [][]byte{der, by.cert.Raw}, PrivateKey: key, Leaf: leaf}, nil
}
