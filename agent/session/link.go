package session

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/agent/home"
	"github.com/stead-project/stead/agent/watchdog"
	"github.com/stead-project/stead/internal/backoff"
	"github.com/stead-project/stead/internal/notify"
	"github.com/stead-project/stead/internal/trouble"
	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/trust"
)

const (
	// enrollTime bounds one attempt to be let in, or to renew.
	enrollTime = 45 * time.Second
	// The waits between two attempts to renew, doubling.
	renewFirst = time.Second
	renewMost  = time.Minute
)

// Link is a node's way to its servers over the network: their addresses and its own
// certificate, which it keeps in its home and renews.
type Link struct {
	home  *home.Home
	log   *slog.Logger
	clock func() time.Duration        // time since boot
	again func(context.Context) error // renew
	named []string                    // servers that the operator named

	mu   sync.Mutex
	mine *trust.Credential // replaced as a whole, never changed
	next int               // the server with which Dial begins
	due  time.Duration     // when to renew, on clock; 0: now
	told successor
}

// Enroll returns the node's link. At first it makes a key, and has a server sign it for a
// join token; it tries until one answers or ctx ends, and fails when one refuses. A node
// that has a certificate needs no token and no server, and a new token is tried once.
// servers are host:port; they are asked beside those that servers told of before.
func Enroll(ctx context.Context, h *home.Home, servers []string, token string, log *slog.Logger) (*Link, error) {
	mine, err := credential(h, servers)
	if err != nil {
		return nil, err
	}
	l := &Link{home: h, log: log, clock: watchdog.BootTime, mine: mine, named: servers, told: successor{moved: notify.New(), spread: moveSpread}}
	l.again = l.renew
	var t trust.JoinToken
	if token != "" {
		if t, err = trust.ParseJoinToken(token); err != nil {
			return nil, err
		}
	}
	switch has := len(mine.Certificate) > 0; {
	case has && (token == "" || t.ID == mine.JoinedBy):
		return l, nil
	case has:
		if err := l.enroll(ctx, t); err != nil {
			log.Warn("join token not used; continuing with the present certificate", "node", string(h.Name()), "err", plain(err))
		}
		return l, nil
	case token == "":
		return nil, errors.New("this node has no certificate yet; give it a join token, made by 'stead token create': --token-file FILE, or STEAD_TOKEN")
	}
	return l, insist(ctx, log.With("node", string(h.Name())), func() (bool, error) {
		err := l.enroll(ctx, t)
		return refusal(err), err
	})
}

// credential reads what is kept, or makes a key and keeps it: were the answer to the
// first request lost, the same key must ask again. A disk that is full stops no node
// that has one.
func credential(h *home.Home, servers []string) (*trust.Credential, error) {
	c, err := trust.Load(h.CredentialPath())
	fresh := errors.Is(err, fs.ErrNotExist)
	if fresh {
		c, err = trust.NewCredential(servers)
	}
	if err != nil {
		return nil, fmt.Errorf("read the node's certificate: %w", err)
	}
	c.Servers = joined(servers, c.Servers)
	if len(c.Servers) == 0 {
		return nil, errors.New("no server is known; name one or more with --join HOST:PORT")
	}
	if fresh {
		err = c.Save(h.CredentialPath())
	}
	return c, err
}

// refusal reports that the same would be answered again.
func refusal(err error) bool {
	switch status.Code(err) {
	case codes.PermissionDenied, codes.AlreadyExists, codes.InvalidArgument, codes.Unimplemented:
		return true
	}
	return false
}

// enroll asks the first server that is of the token's cluster, once.
func (l *Link) enroll(ctx context.Context, t trust.JoinToken) error {
	ctx, cancel := context.WithTimeout(ctx, enrollTime)
	defer cancel()
	mine, next := l.now()
	conn, at, err := proto.ConnectAny(ctx, mine.Servers, next, func(address string) (*tls.Config, error) {
		host, err := trust.Host(address)
		return t.Pin.TLS(host), err
	})
	if err != nil {
		return err
	}
	defer conn.Close()
	l.turn(at + 1) // another one next, should this one fail
	request, err := mine.Request()
	if err != nil {
		return err
	}
	given, err := proto.NewJoinClient(conn).Enroll(ctx, &proto.EnrollRequest{
		Token: t.ID, Secret: t.Secret, Node: string(l.home.Name()), Uid: string(l.home.UID()), Request: request,
	})
	if err != nil {
		return err
	}
	fresh := *mine
	fresh.JoinedBy = t.ID
	return l.take(&fresh, given)
}

// renew gets the next certificate, of a new key.
func (l *Link) renew(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, enrollTime)
	defer cancel()
	conn, err := l.Dial(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	mine, _ := l.now()
	fresh, err := trust.NewCredential(mine.Servers)
	if err != nil {
		return err
	}
	fresh.JoinedBy = mine.JoinedBy
	request, err := fresh.Request()
	if err != nil {
		return err
	}
	given, err := proto.NewJoinClient(conn).Renew(ctx, &proto.RenewRequest{Request: request})
	if err != nil {
		return err
	}
	return l.take(fresh, given)
}

// take keeps what was given, on disk first, and says when the next one is due.
func (l *Link) take(fresh *trust.Credential, given *proto.Certificate) error {
	if err := fresh.Take(given.GetCertificate(), given.GetCa()); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	fresh.Servers = joined(l.mine.Servers, given.GetServers()) // Told may have replaced those with which fresh was made
	if err := fresh.Save(l.home.CredentialPath()); err != nil {
		return err
	}
	another := len(l.mine.CA) > 0 && !bytes.Equal(l.mine.CA, fresh.CA)
	l.mine, l.due = fresh, l.clock()+time.Duration(given.GetLifeMillis())*time.Millisecond*2/3
	if another { // it is used at once: servers take a node as moved that comes with it
		l.due = l.clock()
	}
	return nil
}

// Told takes the addresses of all servers, as one of them told, for the next Dial. They are kept for the agent after this
// one, and replace those told before; those that the operator named stay.
func (l *Link) Told(servers []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fresh := *l.mine
	fresh.Servers = joined(l.named, servers)
	if slices.Equal(fresh.Servers, l.mine.Servers) {
		return
	}
	l.mine = &fresh
	if err := fresh.Save(l.home.CredentialPath()); err != nil {
		l.log.Warn("addresses of servers not saved", "err", err)
	}
}

// joined is a, and what of b is not in it.
func joined(a, b []string) []string {
	all := slices.Clone(a)
	for _, address := range b {
		if !slices.Contains(all, address) {
			all = append(all, address)
		}
	}
	return all
}

func (l *Link) now() (*trust.Credential, int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mine, l.next
}

func (l *Link) turn(next int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next = next
}

// Dial connects to a server that can be reached, each time to another one if there
// are several: who dials again was not content. It implements Dial.
func (l *Link) Dial(ctx context.Context) (*grpc.ClientConn, error) {
	mine, next := l.now()
	conn, at, err := proto.ConnectAny(ctx, mine.Servers, next, mine.TLS)
	if err == nil {
		l.turn(at + 1)
	}
	if trust.Foreign(err) {
		err = fmt.Errorf("the servers' certificate authority is not this node's: if it was replaced while the node was away, or the store restored from before, "+
			"start the agent with a token of 'stead token create --node %s': %w", l.home.Name(), err)
	}
	return conn, err
}

// Run renews the certificate: at once, unless the node has just joined, then
// after two thirds of its life on the clock since boot, and when another authority signs. It logs once why it cannot, tries
// again, and returns when ctx ends.
func (l *Link) Run(ctx context.Context) {
	failures, last := 0, trouble.Last{}
	for ctx.Err() == nil {
		left := l.left()
		if left <= 0 {
			err := l.again(ctx)
			if err == nil && l.behind() {
				err = errBehind
			}
			switch {
			case err == nil:
				failures, last = 0, trouble.Last{}
				continue
			case ctx.Err() != nil:
				return
			}
			if last.Is(plain(err)) {
				l.log.Warn("certificate not renewed", "err", plain(err))
			}
			failures++
			left = backoff.After(renewFirst, renewMost, failures)
		}
		select {
		case <-ctx.Done():
		case <-l.moved():
		case <-time.After(min(left, renewMost)): // not longer, for the host may have slept
		}
	}
}
