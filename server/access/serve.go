package access

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/url"
	"slices"
	"time"

	"google.golang.org/grpc"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/trust"
)

// TLS is for listening: TLS 1.3, with certificates of this authority on both sides. Who
// has none gets through the handshake, for that is how a machine joins; what it may
// ask is the server's business.
func (a *Authority) TLS() *tls.Config {
	clients := x509.NewCertPool()
	clients.AddCert(a.ca)
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return a.ownTLS()
		},
		ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: clients,
		SessionTicketsDisabled: true, // every connection is judged again
	}
}

// CallTLS is for a call to another server of the cluster at address, host:port.
func (a *Authority) CallTLS(address string) (*tls.Config, error) {
	host, err := trust.Host(address)
	if err != nil {
		return nil, err
	}
	mine, err := a.ownTLS()
	if err != nil {
		return nil, err
	}
	servers := x509.NewCertPool()
	servers.AddCert(a.ca)
	return &tls.Config{MinVersion: tls.VersionTLS13, ServerName: host, RootCAs: servers, Certificates: []tls.Certificate{*mine}}, nil
}

// Connect connects to another server of the cluster, by one of its addresses, as this one.
func (a *Authority) Connect(ctx context.Context, addresses []string) (*grpc.ClientConn, error) {
	conn, _, err := proto.ConnectAny(ctx, addresses, 0, a.CallTLS)
	return conn, err
}

// ownTLS is this server's, replaced, with a new key, after two thirds of its
// life: on the monotonic clock, and should the host have slept, on the other.
func (a *Authority) ownTLS() (*tls.Certificate, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c := a.own; c != nil && time.Since(a.ownMade) < a.cfg.Life*2/3 &&
		time.Until(c.Leaf.NotAfter) > a.cfg.Life/3 {
		return c, nil
	}
	made := time.Now()
	c, err := a.sign()
	if err != nil {
		return nil, fmt.Errorf("sign the server's certificate: %w", err)
	}
	a.own, a.ownMade = c, made
	return c, nil
}

func (a *Authority) sign() (*tls.Certificate, error) {
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
	der, err := x509.CreateCertificate(rand.Reader, template, a.ca, key.Public(), a.key)
	if err != nil {
		return nil, err
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	// The authority is shown, too: whoever has only its pin knows it by that.
	return &tls.Certificate{Certificate: [][]byte{der, a.ca.Raw}, PrivateKey: key, Leaf: leaf}, nil
}
