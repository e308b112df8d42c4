package access

import (
	"crypto/x509"
	"testing"
	"time"

	"github.com/stead-project/stead/store/memstore"
	"github.com/stead-project/stead/trust"
)

// TestAHostWhoseClockIsBehindTakesACertificate: of the server, and of a node, at the first and at every later time.
func TestAHostWhoseClockIsBehindTakesACertificate(t *testing.T) {
	a := newAuthority(t, memstore.New())
	node, err := x509.ParseCertificate(credential(t, a, trust.Subject{Role: trust.RoleNode, Name: "n1", UID: "u1"}, DefaultLife).Certificate)
	must(t, err)
	own, err := a.serving.at(a.standing.Load())
	must(t, err)
	roots := x509.NewCertPool()
	roots.AddCert(a.standing.Load().now.cert)
	for name, leaf := range map[string]*x509.Certificate{"node": node, "server": own.Leaf} {
		for step, ok := range map[time.Duration]bool{-leeway + time.Hour: true, 0: true, DefaultLife - time.Hour: true, DefaultLife + time.Hour: false} {
			_, err := leaf.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: time.Now().Add(step), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
			if (err == nil) != ok {
				t.Errorf("certificate of a %s, clock off by %s: %v", name, step, err)
			}
		}
	}
}
