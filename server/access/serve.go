package access

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"time"

	"google.golang.org/grpc"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/trust"
)

// errReplacedAuthority: see TLS.
var errReplacedAuthority = errors.New("the certificate was not signed by an authority of this cluster itself")

// TLS is for listening: TLS 1.3, with certificates of this authority on both sides, as it is at each handshake. Who
// has none gets through the handshake, for that is how a machine joins; what it may
// ask is the server's business. protocols are those of ALPN.
func (a *Authority) TLS(protocols ...string) *tls.Config {
	now := a.listening(a.standing.Load(), protocols)
	now.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		return a.listening(a.standing.Load(), protocols), nil
	}
	return now
}

func (a *Authority) listening(s *standing, protocols []string) *tls.Config {
	clients := x509.NewCertPool()
	for _, t := range s.trusted() {
		clients.AddCert(t.cert)
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: protocols,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return a.servingTLS()
		},
		ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: clients, VerifyConnection: signedDirectly,
		SessionTicketsDisabled: true, // every connection is judged again
	}
}

// signedDirectly refuses a certificate that is known by another one that is shown: what the key of a retired authority signs.
func signedDirectly(state tls.ConnectionState) error {
	if len(state.VerifiedChains) > 0 && directChain(state.VerifiedChains) == nil {
		return errReplacedAuthority
	}
	return nil
}

// directChain is a certificate with the authority that signed it; nil: there is none.
func directChain(chains [][]*x509.Certificate) []*x509.Certificate {
	for _, c := range chains {
		if len(c) == 2 {
			return c
		}
	}
	return nil
}

// CallTLS is for a call to another server of the cluster at address, host:port.
func (a *Authority) CallTLS(address string) (*tls.Config, error) {
	host, err := trust.Host(address)
	if err != nil {
		return nil, err
	}
	mine, err := a.callingTLS()
	if err != nil {
		return nil, err
	}
	s := a.standing.Load()
	servers := x509.NewCertPool()
	for _, t := range s.trusted() {
		anchor, err := t.anchor()
		if err != nil {
			return nil, err
		}
		servers.AddCert(anchor)
	}
	return &tls.Config{MinVersion: tls.VersionTLS13, ServerName: host, RootCAs: servers, Certificates: []tls.Certificate{*mine},
		VerifyConnection: func(state tls.ConnectionState) error { return a.notRetired(s, state) }}, nil
}

// ErrRetired: the authority that this server knows was retired while it was away.
var ErrRetired = errors.New("the cluster's authority was replaced while this server was away, and the other servers do not accept its certificate")

// notRetired fails where another server is known only by a bridge from the authority that this one knows, to one that it does not.
func (a *Authority) notRetired(s *standing, state tls.ConnectionState) error {
	if directChain(state.VerifiedChains) != nil || len(state.VerifiedChains) == 0 {
		return nil
	}
	for _, by := range state.VerifiedChains[0][1:] {
		if !slices.ContainsFunc(s.trusted(), func(t signer) bool { return t.key.PublicKey.Equal(by.PublicKey) }) {
			a.retired.Store(true)
			return ErrRetired
		}
	}
	return nil
}

// Retired reports whether a call to another server found that this authority was retired.
func (a *Authority) Retired() bool { return a.retired.Load() }

// Connect connects to another server of the cluster, by one of its addresses, as this one.
func (a *Authority) Connect(ctx context.Context, addresses []string) (*grpc.ClientConn, error) {
	conn, _, err := proto.ConnectAny(ctx, addresses, 0, a.CallTLS)
	return conn, err
}

// own is a certificate of this server; nil: not made yet.
type own struct {
	cert *tls.Certificate
	made time.Time
	of   *standing
}

// servingTLS is the certificate by which others know this server, with all by which they may know who signed it.
func (a *Authority) servingTLS() (*tls.Certificate, error) {
	return a.ownTLS(&a.serving, func(s *standing) (*tls.Certificate, error) {
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
	})
}

// callingTLS is the certificate by which this server calls others.
func (a *Authority) callingTLS() (*tls.Certificate, error) {
	return a.ownTLS(&a.calling, func(s *standing) (*tls.Certificate, error) { return a.sign(s.signs()) })
}

// ownTLS is a certificate of this server's, replaced, with a new key, after two thirds of its
// life (on the monotonic clock, and should the host have slept, on the other), and when the authority is another.
func (a *Authority) ownTLS(o *own, make func(*standing) (*tls.Certificate, error)) (*tls.Certificate, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.standing.Load()
	if o.cert != nil && o.of == now && time.Since(o.made) < a.cfg.Life*2/3 && time.Until(o.cert.Leaf.NotAfter) > a.cfg.Life/3 {
		return o.cert, nil
	}
	made := time.Now()
	c, err := make(now)
	if err != nil {
		return nil, fmt.Errorf("sign the server's certificate: %w", err)
	}
	*o = own{c, made, now}
	return c, nil
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
