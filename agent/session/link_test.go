package session

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stead-project/stead/agent/home"
	"github.com/stead-project/stead/internal/notify"
	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/trust"
)

// impostor is a server with an authority of its own, which it shows. It counts what it
// is told after the handshake.
type impostor struct {
	pin     trust.Pin
	address string

	mu    sync.Mutex
	told  bytes.Buffer
	calls int
}

func newImpostor(t *testing.T) *impostor {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	must(t, err)
	ca, err := x509.ParseCertificate(der)
	must(t, err)
	// It shows the same certificate as its own and as its authority's.
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{"h2"},
		Certificates: []tls.Certificate{{Certificate: [][]byte{der, der}, PrivateKey: key}},
	})
	must(t, err)
	i := &impostor{pin: trust.PinOf(ca), address: l.Addr().String()}
	var group sync.WaitGroup
	group.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			group.Go(func() {
				defer conn.Close()
				i.mu.Lock()
				i.calls++
				i.mu.Unlock()
				if conn.(*tls.Conn).Handshake() == nil {
					_, _ = conn.Write([]byte{0}) // a server speaks first
				}
				b := make([]byte, 1024)
				n, _ := conn.Read(b)
				i.mu.Lock()
				defer i.mu.Unlock()
				i.told.Write(b[:n])
			})
		}
	})
	t.Cleanup(func() { l.Close(); group.Wait() })
	return i
}

func newHome(t *testing.T) *home.Home {
	t.Helper()
	h, err := home.Open(t.TempDir(), "n1")
	must(t, err)
	t.Cleanup(func() { _ = h.Close() })
	return h
}

// TestAServerThatTheTokenDoesNotNameIsToldNothing: the impostor has all but the key of the authority.
func TestAServerThatTheTokenDoesNotNameIsToldNothing(t *testing.T) {
	i := newImpostor(t)
	wrong := i.pin
	wrong[0] ^= 1
	token := trust.NewJoinToken(wrong)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	said := make(chan string, 1)
	log := slog.New(slog.NewTextHandler(writer(func(line string) {
		if strings.Contains(line, "not joined yet") {
			select {
			case said <- line:
			default:
			}
			cancel()
		}
	}), nil))
	_, err := Enroll(ctx, newHome(t), []string{i.address}, token.Text(), log)
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	if line := <-said; !strings.Contains(line, "does not belong to the cluster of this join token") || strings.Contains(line, token.Text()[13:56]) {
		t.Fatalf("it says %s", line)
	}
	i.mu.Lock()
	if i.calls == 0 || i.told.Len() > 0 {
		t.Errorf("after %d connections it was told %q", i.calls, i.told.Bytes())
	}
	i.mu.Unlock()

	// The same server under its own pin is told something: it is the pin that kept us.
	conn, err := proto.Connect(t.Context(), i.address, i.pin.TLS("127.0.0.1"))
	must(t, err)
	conn.Close()
}

// writer calls itself with each line of a log.
type writer func(string)

func (w writer) Write(p []byte) (int, error) { w(string(p)); return len(p), nil }

// A node that has a certificate starts without any server, whatever token it is given.
func TestAnEnrolledNodeStartsWithoutAServer(t *testing.T) {
	h := newHome(t)
	if _, err := Enroll(t.Context(), h, []string{"127.0.0.1:1"}, "", slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "give it a join token") {
		t.Fatalf("got %v", err)
	}
	if _, err := Enroll(t.Context(), h, nil, "nonsense", slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "not a join token") {
		t.Fatalf("got %v", err)
	}
	before, err := trust.Load(h.CredentialPath())
	must(t, err)
	enrolled := *before
	enrolled.Certificate, enrolled.CA, enrolled.JoinedBy = []byte{1}, []byte{2}, "000000000000"
	must(t, enrolled.Save(h.CredentialPath()))
	other := trust.NewJoinToken(trust.Pin{})
	kept, err := os.Stat(h.CredentialPath())
	must(t, err)
	for _, token := range []string{"", other.Text()} {
		l, err := Enroll(t.Context(), h, nil, token, slog.New(slog.DiscardHandler))
		must(t, err)
		if mine, _ := l.now(); mine.Servers[0] != "127.0.0.1:1" || !bytes.Equal(mine.Key, before.Key) {
			t.Errorf("it became %v", mine.Servers)
		}
	}
	if now, err := os.Stat(h.CredentialPath()); err != nil || !os.SameFile(kept, now) {
		t.Error("a start writes to the disk, which may be full")
	}
}

// What was given is kept before it is used, with the servers that were told, and is due
// after two thirds of its life.
func TestWhatIsGivenIsKeptAndDueInTime(t *testing.T) {
	h := newHome(t)
	mine, err := trust.NewCredential([]string{"a:1"})
	must(t, err)
	key, err := x509.ParsePKCS8PrivateKey(mine.Key)
	must(t, err)
	signer := key.(*ecdsa.PrivateKey)
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, signer.Public(), signer)
	must(t, err)
	l := &Link{home: h, clock: func() time.Duration { return time.Minute }, mine: mine}
	given := &proto.Certificate{Certificate: der, Ca: der, Servers: []string{"a:1", "b:1"}, LifeMillis: (3 * time.Hour).Milliseconds()}
	must(t, l.take(mine, given))
	kept, err := trust.Load(h.CredentialPath())
	must(t, err)
	if l.due != 2*time.Hour+time.Minute || strings.Join(kept.Servers, " ") != "a:1 b:1" || !bytes.Equal(kept.Certificate, der) {
		t.Errorf("due at %s, kept %v", l.due, kept.Servers)
	}
	other, err := trust.NewCredential(nil)
	must(t, err)
	if err := l.take(other, given); err == nil || !bytes.Equal(l.mine.Key, mine.Key) {
		t.Errorf("a certificate of another key: got %v", err)
	}
}

// A node keeps the servers that it was told of beside those that its operator named, over restarts, and forgets those that
// are gone.
func TestServersThatWereToldAreKept(t *testing.T) {
	h := newHome(t)
	mine, err := trust.NewCredential([]string{"a:1"})
	must(t, err)
	mine.Certificate, mine.CA = []byte{1}, []byte{2}
	must(t, mine.Save(h.CredentialPath()))
	start := func(named ...string) *Link {
		l, err := Enroll(t.Context(), h, named, "", slog.New(slog.DiscardHandler))
		must(t, err)
		return l
	}
	want := func(l *Link, servers string) {
		t.Helper()
		if mine, _ := l.now(); strings.Join(mine.Servers, " ") != servers {
			t.Errorf("its servers are %v; want %s", mine.Servers, servers)
		}
	}
	l := start("a:1")
	l.Told([]string{"a:1", "b:1", "c:1"})
	want(l, "a:1 b:1 c:1")
	l.Told([]string{"b:1", "c:1"}) // a was named
	want(l, "a:1 b:1 c:1")
	l = start("a:1")
	want(l, "a:1 b:1 c:1")
	l.Told([]string{"c:1"})
	want(l, "a:1 c:1")
	l = start("d:1")
	want(l, "d:1 a:1 c:1")
	if kept, err := trust.Load(h.CredentialPath()); err != nil || !bytes.Equal(kept.Certificate, mine.Certificate) {
		t.Errorf("kept: %v", err)
	}
}

func TestACertificateIsRenewedAtStartAndAfterTwoThirdsOfItsLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var (
			mu   sync.Mutex
			at   []time.Duration
			away bool
			logs bytes.Buffer
		)
		l := &Link{log: slog.New(slog.NewTextHandler(&logs, nil)), clock: func() time.Duration { return time.Since(began) }}
		l.again = func(context.Context) error {
			mu.Lock()
			defer mu.Unlock()
			if away {
				return io.ErrUnexpectedEOF
			}
			at = append(at, time.Since(began))
			l.due = time.Since(began) + 24*time.Hour*2/3
			return nil
		}
		server := func(gone bool) {
			mu.Lock()
			defer mu.Unlock()
			away = gone
		}
		after := func(d time.Duration, renewed int) {
			t.Helper()
			time.Sleep(d)
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if len(at) != renewed {
				t.Fatalf("after %s it was renewed at %v, want %d times", time.Since(began), at, renewed)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { l.Run(ctx); close(done) }()
		after(0, 1)
		after(16*time.Hour-time.Second, 1)
		after(2*time.Second, 2)
		server(true)
		after(17*time.Hour, 2)
		server(false)
		after(renewMost+time.Second, 3)
		cancel()
		<-done
		if n := strings.Count(logs.String(), "certificate not renewed"); n != 1 {
			t.Errorf("it was told %d times", n)
		}
	})
}

// A node that is told of another authority gets its certificate soon, and uses it at once; a server that is behind is asked again,
// later and later.
func TestANodeRenewsAtOnceWhenAnotherAuthoritySigns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		ca := func() []byte {
			key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
			must(t, err)
			template := &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true}
			der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
			must(t, err)
			return der
		}
		before, after := ca(), ca()
		var mu sync.Mutex
		signs, renewed := before, 0
		l := &Link{home: newHome(t), log: slog.New(slog.DiscardHandler), clock: func() time.Duration { return time.Since(began) },
			mine: &trust.Credential{CA: before}, due: 16 * time.Hour, told: successor{moved: notify.New(), spread: moveSpread}}
		l.again = func(context.Context) error {
			mu.Lock()
			defer mu.Unlock()
			renewed++
			fresh, err := trust.NewCredential(nil)
			must(t, err)
			key, err := x509.ParsePKCS8PrivateKey(fresh.Key)
			must(t, err)
			template := &x509.Certificate{SerialNumber: big.NewInt(1)}
			der, err := x509.CreateCertificate(rand.Reader, template, template, key.(*ecdsa.PrivateKey).Public(), key)
			must(t, err)
			return l.take(fresh, &proto.Certificate{Certificate: der, Ca: signs, LifeMillis: (24 * time.Hour).Milliseconds()})
		}
		times := func(wait time.Duration) int {
			time.Sleep(wait)
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			return renewed
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { l.Run(ctx); close(done) }()
		if n := times(time.Hour); n != 0 {
			t.Fatalf("it renewed %d times before it was told", n)
		}
		l.AuthorityTold(trust.ShortID(after))
		behind := times(10 * time.Minute)
		if behind < 5 || behind > 25 {
			t.Errorf("it asked %d times in ten minutes while no server had heard of it", behind)
		}
		mu.Lock()
		signs = after
		mu.Unlock()
		if n := times(2*renewMost) - behind; n != 2 {
			t.Errorf("it renewed %d times; want once to get the certificate, and once with it", n)
		}
		l.AuthorityTold(trust.ShortID(after))
		if n := times(time.Hour) - behind; n != 2 {
			t.Errorf("it renews again: %d times", n)
		}
		cancel()
		<-done
	})
}
