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
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/stead-project/stead/store/etcdembed"
	"github.com/stead-project/stead/store/etcdstore"
)

// storeOptions choose the store; flags mirror the fields.
type storeOptions struct {
	Endpoints []string // none: the embedded etcd
	CA        string   // files for TLS to external endpoints
	Cert, Key string
	// Insecure: endpoints of other hosts may be reached without TLS.
	Insecure bool
	// QuotaBytes bounds the embedded store's data file; 0: 2 GiB.
	QuotaBytes int64
}

func (o *storeOptions) flags(f *pflag.FlagSet) {
	f.StringSliceVar(&o.Endpoints, "etcd-endpoints", nil, "external etcd (default: the embedded one), https://host:2379,...")
	f.StringVar(&o.CA, "etcd-cacert", "", "file with the certificates that signed the endpoints'")
	f.StringVar(&o.Cert, "etcd-cert", "", "file with our client certificate")
	f.StringVar(&o.Key, "etcd-key", "", "file with its key")
	f.BoolVar(&o.Insecure, "etcd-insecure", false, "reach endpoints on other hosts without TLS: who is on the way reads and writes all that is stored")
	f.Int64Var(&o.QuotaBytes, "store-quota-bytes", 0, "most bytes of the embedded store's data file; writes are refused above (default 2 GiB)")
}

// about names the store for people.
func (o *storeOptions) about() string {
	if len(o.Endpoints) == 0 {
		return "embedded etcd"
	}
	return "etcd at " + strings.Join(o.Endpoints, ",")
}

// openedStore is a store, how to close it, and what tells of its own end.
type openedStore struct {
	*etcdstore.Store
	embedded *etcdembed.Embedded // nil: external
}

// open starts or reaches the store; dir holds the embedded one's data.
func (o *storeOptions) open(ctx context.Context, dir string, log *slog.Logger) (*openedStore, error) {
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
		Dir: embeddedDir(dir), Name: "stead", Logger: log, QuotaBytes: o.QuotaBytes,
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

// checkSecure refuses endpoints of other hosts that are reached in the clear: whoever writes to
// the store owns every host. tls: those without a scheme are reached by TLS.
func (o *storeOptions) checkSecure(tls bool) error {
	for _, e := range o.Endpoints {
		scheme, at, found := strings.Cut(e, "://")
		if !found {
			scheme, at = "", e
		}
		if o.Insecure || scheme == "https" || scheme == "unix" || scheme == "unixs" || scheme == "" && tls || loopback(at) {
			continue
		}
		return usageError{fmt.Errorf("--etcd-endpoints: %s would be reached without TLS, and who is on the way there could read and write "+
			"all that is stored; write https://, or accept that with --etcd-insecure", e)}
	}
	return nil
}

// loopback reports whether host:port is of this host alone.
func loopback(at string) bool {
	host, _, err := net.SplitHostPort(at)
	if err != nil {
		host = at
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func (o *storeOptions) tls() (*tls.Config, error) {
	if o.CA == "" && o.Cert == "" && o.Key == "" {
		for _, e := range o.Endpoints {
			if strings.HasPrefix(e, "https://") {
				return &tls.Config{MinVersion: tls.VersionTLS12}, nil
			}
		}
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
			return nil, fmt.Errorf("--etcd-cacert: %s holds no certificate", o.CA)
		}
	}
	if (o.Cert == "") != (o.Key == "") {
		return nil, usageError{errors.New("--etcd-cert and --etcd-key go together")}
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

// reachEvery is how often an external store is looked at.
const reachEvery = 5 * time.Second

// reach tells why an external store cannot be used, once each reason, until ctx ends.
func (s *openedStore) reach(ctx context.Context, log *slog.Logger) {
	for told := ""; ctx.Err() == nil; {
		err := s.Reach(ctx)
		switch {
		case ctx.Err() != nil:
		case err == nil && told != "":
			log.Info("store reached")
			told = ""
		case err != nil && err.Error() != told:
			told = err.Error()
			log.Warn("store not reached", "err", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(reachEvery):
		}
	}
}

// watch returns when the embedded store ended by itself, or ctx does.
func (s *openedStore) watch(ctx context.Context, log *slog.Logger) error {
	if s.embedded == nil {
		s.reach(ctx, log)
		return nil
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-s.embedded.Err():
		return fmt.Errorf("embedded etcd ended: %w", err)
	}
}

// noted forgets that an embedded store was unpacked, once the server holds it for that.
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

// close ends the client first, then the embedded store.
func (s *openedStore) close() error {
	err := s.Store.Close()
	if s.embedded != nil {
		err = errors.Join(err, s.embedded.Close())
	}
	return err
}
