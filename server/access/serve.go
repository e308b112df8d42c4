package access

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"slices"

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
	now := listening(a.standing.Load(), a.serving, protocols)
	now.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		return listening(a.standing.Load(), a.serving, protocols), nil
	}
	return now
}

func listening(s *standing, mine *own, protocols []string) *tls.Config {
	clients := x509.NewCertPool()
	for _, t := range s.trusted() {
		clients.AddCert(t.cert)
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: protocols,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return mine.at(s)
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
	s := a.standing.Load()
	mine, err := a.calling.at(s)
	if err != nil {
		return nil, err
	}
	servers := x509.NewCertPool()
	for _, t := range s.trusted() {
		anchor, err := t.anchor()
		if err != nil {
			return nil, err
		}
		servers.AddCert(anchor)
	}
	return &tls.Config{MinVersion: tls.VersionTLS13, ServerName: host, RootCAs: servers, Certificates: []tls.Certificate{*mine},
		VerifyConnection: func(state tls.ConnectionState) error {
			err := s.notRetired(state)
			if err != nil {
				a.retired.Store(true)
			}
			return err
		}}, nil
}

// ErrRetired: the authority that this server knows was retired while it was away.
var ErrRetired = errors.New("the cluster's authority was replaced while this server was away, and the other servers do not accept its certificate")

// notRetired fails where another server is known only by a bridge from the authority that this one knows, to one that it does not.
func (s *standing) notRetired(state tls.ConnectionState) error {
	if directChain(state.VerifiedChains) != nil || len(state.VerifiedChains) == 0 {
		return nil
	}
	for _, by := range state.VerifiedChains[0][1:] {
		if !slices.ContainsFunc(s.trusted(), func(t signer) bool { return t.key.PublicKey.Equal(by.PublicKey) }) {
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
