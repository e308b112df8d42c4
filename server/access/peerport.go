package access

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"sync"
	"time"

	"github.com/stead-project/stead/internal/durable"
	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records/sealing"
	"github.com/stead-project/stead/trust"
)

// What connections to the port of the store's peers may take: so many at once, in all and of
// one host. A peer needs fewer than ten.
const (
	peersAll  = 256
	peersEach = 64
)

// pemEvery is how often it is looked whether the certificate by which the store calls its
// peers is due: see own.at.
const pemEvery = time.Minute

// PeerPort is the port at which the store's members on other servers reach this one's. Only
// who shows a server's certificate of this cluster gets through.
type PeerPort struct {
	authority *Authority
	lis       net.Listener
	to        string // the socket of the store's member
	dir       string
	limit     *limit
	refusals  Refusals
	log       *slog.Logger
	started   []sealing.AuthorityID

	renewing sync.Mutex
	written  *tls.Certificate // what is in the file
}

// PeerFiles are the PEM files by which the store calls its peers, in a server's data
// directory: the authority, and the server's certificate with its key.
func PeerFiles(dir string) (ca, certificate string) {
	return filepath.Join(dir, "peer-ca.pem"), filepath.Join(dir, "peer.pem")
}

// OpenPeerPort listens at address, and writes PeerFiles in dir; to is the store's own socket.
// Nothing is answered before Run.
func OpenPeerPort(ctx context.Context, a *Authority, address, to, dir string, log *slog.Logger) (*PeerPort, error) {
	p := &PeerPort{authority: a, to: to, dir: dir, limit: newLimit(peersAll, peersEach), log: log}
	err := p.writeAuthorities()
	if err == nil {
		err = p.Renew()
	}
	if err != nil {
		return nil, fmt.Errorf("write the certificate for the store's peers: %w", err)
	}
	if p.lis, err = proto.Listen(ctx, address); err != nil {
		return nil, fmt.Errorf("listen for the store's peers: %w", err)
	}
	return p, nil
}

// writeAuthorities writes those by which the store, which reads them once, knows its peers.
func (p *PeerPort) writeAuthorities() error {
	var b bytes.Buffer
	for _, t := range p.authority.standing.Load().trusted() {
		anchor, err := t.anchor()
		if err == nil {
			err = pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: anchor.Raw})
		}
		if err != nil {
			return err
		}
		p.started = append(p.started, idOf(t.cert))
	}
	ca, _ := PeerFiles(p.dir)
	return durable.Put(ca, b.Bytes(), 0o600)
}

// Started are the authorities by which the store knows its peers until it is started again.
func (p *PeerPort) Started() []sealing.AuthorityID { return p.started }

// Renew writes the certificate's file, if there is another one.
func (p *PeerPort) Renew() error {
	p.renewing.Lock()
	defer p.renewing.Unlock()
	mine, err := p.authority.calling.at(p.authority.standing.Load())
	if err != nil || mine == p.written {
		return err
	}
	key, err := x509.MarshalPKCS8PrivateKey(mine.PrivateKey)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	blocks := []*pem.Block{{Type: "PRIVATE KEY", Bytes: key}}
	for _, der := range mine.Certificate {
		blocks = append(blocks, &pem.Block{Type: "CERTIFICATE", Bytes: der})
	}
	for _, block := range blocks {
		if err := pem.Encode(&b, block); err != nil {
			return err
		}
	}
	_, file := PeerFiles(p.dir)
	if err := durable.Put(file, b.Bytes(), 0o600); err != nil {
		return err
	}
	p.written = mine
	return nil
}

// Run leads peers to the store, and renews its certificate, until ctx ends.
func (p *PeerPort) Run(ctx context.Context) {
	var group sync.WaitGroup
	defer group.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = p.lis.Close() })()
	group.Go(func() {
		for ctx.Err() == nil {
			select {
			case <-ctx.Done():
			case <-time.After(pemEvery):
				if err := p.Renew(); err != nil {
					p.log.Warn("certificate for the store's peers not renewed", "err", err)
				}
			}
		}
	})
	config := p.tls()
	for {
		conn, err := p.lis.Accept()
		switch {
		case ctx.Err() != nil:
			return
		case err != nil: // e.g. no file descriptor is free
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
			continue
		}
		release := p.limit.take(hostOf(conn))
		if release == nil {
			_ = conn.Close()
			continue
		}
		group.Go(func() {
			defer release()
			if err := p.serve(ctx, conn, config); err != nil && ctx.Err() == nil {
				p.refuse(hostOf(conn), err)
			}
		})
	}
}

func (p *PeerPort) refuse(host string, err error) {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		err = op.Err // without the ports, which would make a new cause of each
	}
	text := short(err.Error())
	if now, _ := p.refusals.first(time.Now(), host+"\x00"+text); now {
		p.log.Warn("connection to the store's port refused", "reason", "somebody at "+host, "err", text)
	}
}

// tls demands a server's certificate.
func (p *PeerPort) tls() *tls.Config {
	demand := func(config *tls.Config) *tls.Config {
		config.ClientAuth, config.VerifyConnection = tls.RequireAndVerifyClientCert, p.verify
		return config
	}
	config := demand(p.authority.TLS())
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		return demand(listening(p.authority.standing.Load(), p.authority.serving, nil)), nil
	}
	return config
}

func (p *PeerPort) verify(state tls.ConnectionState) error {
	if err := signedDirectly(state); err != nil {
		return err
	}
	who, err := trust.SubjectOf(state.PeerCertificates[0])
	switch {
	case err != nil:
		return err
	case who.Cluster != p.authority.cluster:
		return errors.New("the certificate is of another cluster")
	case who.Role != trust.RoleServer:
		return fmt.Errorf("this port is for servers, not for %s", who)
	}
	return nil
}

// serve leads one connection to the store.
func (p *PeerPort) serve(ctx context.Context, conn net.Conn, config *tls.Config) error {
	defer conn.Close()
	secure := tls.Server(conn, config)
	shaking, cancel := context.WithTimeout(ctx, connectTime)
	err := secure.HandshakeContext(shaking)
	cancel()
	if err != nil {
		return err
	}
	inner, err := new(net.Dialer).DialContext(ctx, "unix", p.to)
	if err != nil {
		return nil // the store is not there yet; its peer comes again
	}
	defer inner.Close()
	defer context.AfterFunc(ctx, func() { _, _ = conn.Close(), inner.Close() })()
	back := make(chan struct{})
	go func() {
		defer close(back)
		_, _ = io.Copy(secure, inner)
		_ = conn.Close()
	}()
	_, _ = io.Copy(inner, secure)
	_ = inner.Close()
	<-back
	return nil
}

// Close ends a port that does not run.
func (p *PeerPort) Close() { _ = p.lis.Close() }
