package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/stead-project/stead/store/etcdembed"
	"github.com/stead-project/stead/store/etcdstore"
)

// storeOptions choose the store.
type storeOptions struct {
	Endpoints  []string // none: the embedded etcd
	CA         string   // files for TLS to external endpoints
	Cert, Key  string
	Insecure   bool  // endpoints of other hosts may be reached without TLS
	QuotaBytes int64 // of the embedded store's data file; 0: 2 GiB
}

func (o *storeOptions) flags(f *pflag.FlagSet) {
	f.StringSliceVar(&o.Endpoints, "etcd-endpoints", nil, "endpoints of an external etcd, https://host:2379,... (default: an embedded etcd)")
	f.StringVar(&o.CA, "etcd-cacert", "", "file with the CA certificates of the endpoints")
	f.StringVar(&o.Cert, "etcd-cert", "", "file with the client certificate")
	f.StringVar(&o.Key, "etcd-key", "", "file with the client certificate's key")
	f.BoolVar(&o.Insecure, "etcd-insecure", false, "allow endpoints on other hosts without TLS: anyone on the network path can read and change the store")
	f.Int64Var(&o.QuotaBytes, "store-quota-bytes", 0, "limit of the embedded store's data file in bytes; writes above it are refused (default 2 GiB)")
}

// about is the name of the store in messages.
func (o *storeOptions) about() string {
	if len(o.Endpoints) == 0 {
		return "embedded etcd"
	}
	return "etcd at " + strings.Join(o.Endpoints, ",")
}

// openedStore is a store, and the embedded etcd below it.
type openedStore struct {
	*etcdstore.Store
	embedded *etcdembed.Embedded // nil: external
}

// open starts or reaches the store; dir holds the embedded one's data.
// peers has members of other servers reach the embedded one; nil: it is alone.
func (o *storeOptions) open(ctx context.Context, dir, name string, peers *etcdembed.Peers, log *slog.Logger) (*openedStore, error) {
	if len(o.Endpoints) > 0 {
		secure, err := o.tls()
		if err != nil {
			return nil, err
		}
		if err := o.checkSecure(secure != nil); err != nil {
			return nil, err
		}
		s, err := etcdstore.New(etcdstore.Config{Endpoints: o.Endpoints, TLS: secure})
		if err != nil {
			return nil, err
		}
		return &openedStore{Store: s}, nil
	}
	e, err := etcdembed.Start(ctx, etcdembed.Config{
		Dir: embeddedDir(dir), Name: name, Logger: log, QuotaBytes: o.QuotaBytes, Peers: peers,
	})
	if err != nil {
		return nil, err
	}
	s, err := etcdstore.New(etcdstore.Config{Client: e.Client()})
	if err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return &openedStore{Store: s, embedded: e}, nil
}

// checkSecure refuses endpoints on other hosts without TLS: whoever can write to the store
// controls every host. tls: endpoints without a scheme use TLS.
func (o *storeOptions) checkSecure(tls bool) error {
	for _, e := range o.Endpoints {
		scheme, at, found := strings.Cut(e, "://")
		if !found {
			scheme, at = "", e
		}
		if o.Insecure || scheme == "https" || scheme == "unix" || scheme == "unixs" || scheme == "" && tls || loopback(at) {
			continue
		}
		return misuse("--etcd-endpoints: %s would be used without TLS, and anyone on the network path could read and change "+
			"the store; use https://, or accept that with --etcd-insecure", e)
	}
	return nil
}

// loopback reports whether host:port is a loopback address.
func loopback(at string) bool {
	host, _, err := net.SplitHostPort(at)
	if err != nil {
		host = at
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func (o *storeOptions) tls() (*tls.Config, error) {
	wanted := slices.ContainsFunc(o.Endpoints, func(e string) bool { return strings.HasPrefix(e, "https://") })
	if !wanted && o.CA == "" && o.Cert == "" && o.Key == "" {
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if o.CA != "" {
		pem, err := os.ReadFile(o.CA)
		if err != nil {
			return nil, err
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("--etcd-cacert: %s contains no certificate", o.CA)
		}
	}
	if (o.Cert == "") != (o.Key == "") {
		return nil, misuse("--etcd-cert and --etcd-key must be used together")
	}
	if o.Cert != "" {
		pair, err := tls.LoadX509KeyPair(o.Cert, o.Key)
		if err != nil {
			return nil, fmt.Errorf("--etcd-cert: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// reachEvery is how often an external store is checked.
const reachEvery = 5 * time.Second

// reach logs why an external store cannot be used, each reason once, until ctx ends.
func (s *openedStore) reach(ctx context.Context, log *slog.Logger) {
	for logged := ""; ctx.Err() == nil; {
		err := s.Reach(ctx)
		switch {
		case ctx.Err() != nil:
		case err == nil && logged != "":
			log.Info("store reachable again")
			logged = ""
		case err != nil && err.Error() != logged:
			logged = err.Error()
			log.Warn("store not reachable", "err", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(reachEvery):
		}
	}
}

// watch returns when the embedded store has ended by itself, or ctx ends.
func (s *openedStore) watch(ctx context.Context, log *slog.Logger) error {
	if s.embedded == nil {
		s.reach(ctx, log)
		return nil
	}
	select {
	case <-ctx.Done():
		return nil
	case <-s.embedded.Ended():
		return s.embedded.Why()
	case err := <-s.embedded.Err():
		return fmt.Errorf("embedded etcd ended: %w", err)
	}
}

// noted removes the note that an embedded store was unpacked, once the server holds it for that.
func (s *openedStore) noted(ctx context.Context, held <-chan struct{}) error {
	if s.embedded == nil || s.embedded.UnpackedFrom() == "" {
		return nil
	}
	select {
	case <-ctx.Done():
		return nil
	case <-held:
		return s.embedded.Forget()
	}
}

// close closes the client first, then the embedded store.
func (s *openedStore) close() error {
	err := s.Store.Close()
	if s.embedded != nil {
		err = errors.Join(err, s.embedded.Close())
	}
	return err
}
