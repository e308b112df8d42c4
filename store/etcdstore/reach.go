package etcdstore

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/stead-project/stead/store"
)

// reachTime bounds a look at one endpoint; alertTime is how long a server's objection
// to our certificate may take, which comes after the handshake.
const (
	reachTime = 3 * time.Second
	alertTime = time.Second
)

// Reach reads from the store and says, in words for people, why it cannot: what each
// endpoint of an external etcd answers, or which right is missing. The client's own
// errors are time-outs mostly.
func (s *Store) Reach(ctx context.Context) error {
	_, _, err := s.Get(ctx, store.ClusterKey)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, rpctypes.ErrPermissionDenied):
		return fmt.Errorf("%w: etcd's user needs a role with readwrite on the keys from %s to %s",
			err, s.prefix, clientv3.GetPrefixRangeEnd(s.prefix))
	case errors.Is(err, rpctypes.ErrUserEmpty), errors.Is(err, rpctypes.ErrAuthFailed):
		return fmt.Errorf("%w: etcd asks for a user: give a client certificate whose common name is one (--etcd-cert)", err)
	}
	var why []error
	for _, endpoint := range s.endpoints {
		if cause := s.reachOne(ctx, endpoint); cause != nil {
			why = append(why, fmt.Errorf("%s: %w", endpoint, cause))
		}
	}
	if len(why) == 0 {
		return err
	}
	return errors.Join(why...)
}

// reachOne says what is between us and an endpoint; nil: nothing that shows.
func (s *Store) reachOne(ctx context.Context, endpoint string) error {
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" {
		return errors.New("not an address; write https://host:2379")
	}
	ctx, cancel := context.WithTimeout(ctx, reachTime)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", u.Host)
	if err != nil {
		return err
	}
	defer conn.Close()
	config := &tls.Config{InsecureSkipVerify: true}
	if u.Scheme == "https" {
		config = s.secure.Clone()
	}
	config.ServerName = u.Hostname()
	c := tls.Client(conn, config)
	err = c.HandshakeContext(ctx)
	if u.Scheme != "https" {
		if err == nil {
			return errors.New("it speaks TLS: write https:// and give --etcd-cacert")
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("%w; --etcd-cacert names the authority that is trusted", err)
	}
	if err := c.SetReadDeadline(time.Now().Add(alertTime)); err != nil {
		return err
	}
	if _, err := c.Read(make([]byte, 1)); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("%w; --etcd-cert and --etcd-key give it a certificate that it trusts", err)
	}
	return nil
}
