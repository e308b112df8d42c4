package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// externalURL is where a lab's external etcd answers, inside its namespace.
const externalURL = "https://127.0.0.1:2379"

// externalStore says that every lab has an external etcd: make e2e STORE=external.
func externalStore() bool { return os.Getenv("STEAD_E2E_STORE") == "external" }

// startStore starts (again) the lab's external etcd, which asks for client
// certificates, and makes servers use it from now on.
func (l *Lab) startStore() {
	l.t.Helper()
	binary := l.etcdBinary()
	if l.certs == nil {
		l.certs = newCerts(l)
	}
	at := l.certs.dir
	peer := "http://127.0.0.1:2380"
	l.store = l.start("etcd", binary, "--name", "external", "--data-dir", l.path("etcd"),
		"--listen-client-urls", externalURL, "--advertise-client-urls", externalURL,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "external="+peer,
		"--client-cert-auth", "--trusted-ca-file", at+"/ca.pem", "--cert-file", at+"/server.pem", "--key-file", at+"/server-key.pem",
		"--auto-compaction-retention", "1h", "--logger", "zap", "--log-level", "warn")
	l.storeFlags = l.certs.flags("ca.pem", "stead")
	l.eventually(time.Minute, "etcd answers", func() error {
		out, err := l.inside(time.Minute, "curl", "-sf", "-m", "3", "--cacert", at+"/ca.pem",
			"--cert", at+"/stead.pem", "--key", at+"/stead-key.pem", externalURL+"/health")
		if err != nil || !strings.Contains(out, "true") {
			return fmt.Errorf("%v %s", err, out)
		}
		return nil
	})
}

// etcdBinary is Debian's etcd.
func (l *Lab) etcdBinary() string {
	l.t.Helper()
	binary, err := exec.LookPath("etcd")
	if err != nil {
		if binary, err = filepath.Abs("../../.cache/tools/usr/bin/etcd"); err == nil {
			_, err = os.Stat(binary)
		}
		if err != nil {
			l.t.Fatalf("no etcd: %v; run make e2e", err)
		}
	}
	return binary
}

// ownStore is for tests about the embedded store: servers use it, whatever
// STEAD_E2E_STORE says.
func (l *Lab) ownStore() { l.storeFlags = nil }

// certs is a directory of certificates and keys, signed by ca.pem; other-ca.pem
// signed none but its own.
type certs struct {
	l   *Lab
	dir string
	ca  tls.Certificate
}

func newCerts(l *Lab) *certs {
	l.t.Helper()
	c := &certs{l: l, dir: l.path("certs")}
	if err := os.Mkdir(c.dir, 0o700); err != nil {
		l.t.Fatal(err)
	}
	other := c.make("other-ca", nil)
	c.make("stranger", &other)
	c.ca = c.make("ca", nil)
	c.make("server", &c.ca)
	c.make("stead", &c.ca)
	c.make("nameless", &c.ca)
	return c
}

// make writes NAME.pem and NAME-key.pem, of the common name NAME; without a parent it
// is an authority.
func (c *certs) make(name string, parent *tls.Certificate) tls.Certificate {
	c.l.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		c.l.t.Fatal(err)
	}
	about := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	for i := range controls { // of a cluster's own machines
		about.IPAddresses = append(about.IPAddresses, net.ParseIP(controlAddress(i)))
	}
	if name == "nameless" { // etcd's gateway refuses a certificate that names a user
		about.Subject = pkix.Name{Organization: []string{"stead"}}
	}
	signer, signerKey := about, any(key)
	if parent == nil {
		about.IsCA, about.BasicConstraintsValid, about.KeyUsage = true, true, x509.KeyUsageCertSign
	} else {
		signer, signerKey = parent.Leaf, parent.PrivateKey
	}
	der, err := x509.CreateCertificate(rand.Reader, about, signer, key.Public(), signerKey)
	leaf, err2 := x509.ParseCertificate(der)
	keyDER, err3 := x509.MarshalPKCS8PrivateKey(key)
	if err := errors.Join(err, err2, err3); err != nil {
		c.l.t.Fatal(err)
	}
	err = errors.Join(
		os.WriteFile(filepath.Join(c.dir, name+".pem"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600),
		os.WriteFile(filepath.Join(c.dir, name+"-key.pem"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}), 0o600))
	if err != nil {
		c.l.t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// flags are those with which a server reaches the external etcd as a client.
func (c *certs) flags(ca, client string) []string {
	flags := []string{"--etcd-endpoints", externalURL, "--etcd-cacert", filepath.Join(c.dir, ca)}
	if client != "" {
		flags = append(flags, "--etcd-cert", filepath.Join(c.dir, client+".pem"), "--etcd-key", filepath.Join(c.dir, client+"-key.pem"))
	}
	return flags
}

// etcdctl calls the JSON gateway of the external etcd, as the user of a token, if any.
func (l *Lab) etcdctl(token, path, body string) (string, error) {
	args := []string{"-s", "-m", "10", "--cacert", l.certs.dir + "/ca.pem", "--cert", l.certs.dir + "/nameless.pem",
		"--key", l.certs.dir + "/nameless-key.pem", "-X", http.MethodPost, "-d", body}
	if token != "" {
		args = append(args, "-H", "Authorization: "+token)
	}
	out, err := l.inside(time.Minute, "curl", append(args, externalURL+"/v3/"+path)...)
	if err == nil && (!strings.HasPrefix(out, "{") || strings.Contains(out, `"error"`)) {
		err = errors.New(out)
	}
	return out, err
}
