// Package peer copies the trees of moves from one node to another (SAFETY S12), over TLS 1.3. Each end has a key that was
// made for the move, and knows the other's by its SHA-256, which the servers told.
package peer

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/stead-project/stead/agent/move"
	"github.com/stead-project/stead/agent/move/tree"
	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/records/moves"
)

// Config is what an Exchange needs.
type Config struct {
	// Listen is the address and port (0: any) at which a source waits for targets; it listens from the first move on.
	Listen string
	// BytesPerSecond bounds the copying of all moves together, each way; 0: not at all.
	BytesPerSecond int64
	// Now is the clock of the file systems.
	Now    func() time.Time
	Logger *slog.Logger
}

// Exchange is the body of move.Copier.
type Exchange struct {
	c     Config
	limit *rate.Limiter // nil: none
	group sync.WaitGroup
	hello chan struct{} // has an element for each handshake under way

	mu     sync.Mutex
	moves  map[moves.MoveID]*part
	listen net.Listener
	closed bool
}

var _ move.Copier = (*Exchange)(nil)

// part is what is kept of a move. All but sums is guarded by the copier's mu.
type part struct {
	cert  tls.Certificate
	key   string
	sums  *tree.Sums
	ctx   context.Context // of what is handed out
	peer  move.Other
	trees []runtime.MoveTree
	total int64    // bytes of the trees, when they were last counted
	conn  net.Conn // of the target that is served
}

// New returns a copier; it listens later. Close ends it.
func New(c Config) *Exchange {
	return &Exchange{c: c, limit: limiter(c.BytesPerSecond), hello: make(chan struct{}, hellosMost), moves: map[moves.MoveID]*part{}}
}

// limiter lets so many bytes through, and what one frame has at once.
func limiter(perSecond int64) *rate.Limiter {
	if perSecond <= 0 {
		return nil
	}
	return rate.NewLimiter(rate.Limit(perSecond), dataBytes)
}

// Close ends all, and returns when nothing is under way.
func (c *Exchange) Close() error {
	c.mu.Lock()
	c.closed = true
	var err error
	if c.listen != nil {
		err = c.listen.Close()
	}
	for _, p := range c.moves {
		p.hangUp()
	}
	c.mu.Unlock()
	c.group.Wait()
	return err
}

func (p *part) hangUp() {
	if p.conn != nil {
		p.conn.Close()
		p.conn = nil
	}
}

// of finds what is kept of a move, or makes it; the caller holds the lock.
func (c *Exchange) of(id moves.MoveID) (*part, error) {
	if p := c.moves[id]; p != nil {
		return p, nil
	}
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{string(id)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		return nil, err
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	p := &part{
		cert: tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private, Leaf: leaf}, key: keyOf(leaf),
		sums: tree.NewSums(c.c.Now),
	}
	c.moves[id] = p
	return p, nil
}

// keyOf is what names a key to the peer.
func keyOf(cert *x509.Certificate) string {
	sum := sha256.Sum256(cert.RawSubjectPublicKeyInfo)
	return hex.EncodeToString(sum[:])
}

// Key implements move.Copier.
func (c *Exchange) Key(id moves.MoveID) (string, uint16, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, err := c.of(id)
	if err != nil {
		return "", 0, fmt.Errorf("make a key: %w", err)
	}
	if c.closed {
		return "", 0, net.ErrClosed
	}
	if c.listen == nil {
		if c.listen, err = net.Listen("tcp", c.c.Listen); err != nil {
			c.listen = nil
			return "", 0, fmt.Errorf("listen for other nodes' moves: %w", err)
		}
		lis := c.listen
		c.group.Go(func() { c.accept(lis) })
	}
	return p.key, uint16(c.listen.Addr().(*net.TCPAddr).Port), nil
}

// Offer implements move.Copier.
func (c *Exchange) Offer(ctx context.Context, peer move.Other, trees []runtime.MoveTree) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, err := c.of(peer.Move)
	if err != nil {
		return // Key told why
	}
	if p.peer.Key != peer.Key {
		p.hangUp()
	}
	p.ctx, p.peer, p.trees = context.WithoutCancel(ctx), peer, trees
}

// Withdraw implements move.Copier.
func (c *Exchange) Withdraw(id moves.MoveID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.moves[id]; p != nil {
		p.hangUp()
		delete(c.moves, id)
	}
}

// Sums implements move.Copier.
func (c *Exchange) Sums(ctx context.Context, id moves.MoveID, trees []runtime.MoveTree, fresh bool) (sums []moves.MoveSum, err error) {
	c.mu.Lock()
	p, err := c.of(id)
	c.mu.Unlock()
	if err != nil {
		return nil, err
	}
	for _, t := range trees {
		sum, err := tree.Sum(ctx, t.Path, p.sums, fresh)
		if err != nil {
			return nil, never(err)
		}
		sums = append(sums, moves.MoveSum{Claim: t.Claim, Sum: sum})
	}
	return sums, nil
}

// never marks what does not pass by itself.
func never(err error) error {
	if errors.Is(err, tree.ErrMounted) || errors.Is(err, tree.ErrAttributes) {
		return fmt.Errorf("%w: %w", move.ErrNever, err)
	}
	return err
}

// tlsOf is the TLS of one end; key is the other's.
func tlsOf(p *part, key string) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{p.cert}, ClientAuth: tls.RequireAnyClientCert,
		SessionTicketsDisabled: true,
		InsecureSkipVerify:     true, // VerifyConnection does it: nobody signs these keys
		VerifyConnection: func(s tls.ConnectionState) error {
			if key == "" || len(s.PeerCertificates) != 1 || keyOf(s.PeerCertificates[0]) != key {
				return errors.New("the other node has another key than the servers told")
			}
			return nil
		},
	}
}

// accept serves targets until the listener is closed. What they ask for by its name is the move.
func (c *Exchange) accept(lis net.Listener) {
	for {
		conn, err := lis.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			time.Sleep(100 * time.Millisecond) // no descriptor is left
			continue
		}
		select {
		case c.hello <- struct{}{}:
			c.group.Go(func() { c.serve(conn) })
		default: // who is not known yet takes no more than that
			conn.Close()
		}
	}
}

const (
	// helloTime is how long a handshake may take, hellosMost how many may be under way at once.
	helloTime  = 10 * time.Second
	hellosMost = 64
)

// serve lets one target in.
func (c *Exchange) serve(raw net.Conn) {
	defer raw.Close()
	var p *part
	conn := tls.Server(raw, &tls.Config{MinVersion: tls.VersionTLS13, GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		p = c.moves[moves.MoveID(h.ServerName)]
		if p == nil || p.peer.Key == "" || c.closed {
			return nil, errors.New("no such move is offered here")
		}
		return tlsOf(p, p.peer.Key), nil
	}})
	err := errors.Join(raw.SetDeadline(time.Now().Add(helloTime)), conn.Handshake(), raw.SetDeadline(time.Time{}))
	<-c.hello
	if err != nil {
		c.c.Logger.Debug("move refused", "err", err)
		return
	}
	c.mu.Lock()
	if c.closed || conn.ConnectionState().ServerName == "" {
		c.mu.Unlock()
		return
	}
	p.hangUp()
	p.conn = raw
	s := &server{c: c, p: p, wire: newWire(conn), trees: p.trees, limits: []*rate.Limiter{c.limit, limiter(p.peer.BytesPerSecond)}}
	ctx := p.ctx
	c.mu.Unlock()
	if err := s.run(ctx); err != nil {
		c.c.Logger.Debug("move interrupted", "err", err)
	}
}
