package e2e

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stead-project/stead/test/judge"
)

// TestASetLivesOnAnExternalEtcd runs the main flows on Debian's etcd 3.4 with TLS and
// client certificates.
func TestASetLivesOnAnExternalEtcd(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	if _, err := os.Stat(etcdArchive); err != nil {
		t.Fatalf("no etcd image: %v; run make image", err)
	}
	if l.store == nil {
		l.startStore()
	}
	l.startAll(etcdArchive)
	if out := l.stead("version"); !strings.Contains(out, externalURL) {
		t.Errorf("version does not name the store:\n%s", out)
	}
	l.stead("apply", "-f", "../../examples/etcd/etcd.yaml", "--wait", "--timeout", patience)
	names := []string{"etcd-0", "etcd-1", "etcd-2"}
	stop := l.startLoad("--endpoints", etcdEndpoints)
	kept := l.stayOf(names...)

	t.Log("the server is killed")
	_ = l.server.signal(syscall.SIGKILL)
	l.startServer()
	l.assertStay(kept)

	t.Log("the store is killed: members run on, and what is away is told")
	_ = l.store.signal(syscall.SIGKILL)
	l.eventually(2*time.Minute, "the server tells that its store is away", func() error {
		out, err := l.trySteadFor(time.Minute, "apply", "-f", "../../examples/etcd/etcd.yaml")
		if err == nil || !strings.Contains(out, "store") {
			return fmt.Errorf("%v: %s", err, out)
		}
		return nil
	})
	for name, before := range kept {
		if now := l.begun(name); now != before.begun {
			judge.Broken(t, "%s: processes %s became %s", name, before.begun, now)
		}
	}
	l.startStore()
	l.assertStay(kept)

	t.Log("an update")
	l.eventually(time.Minute, "the server takes a change again", func() error {
		out, err := l.trySteadFor(time.Minute, "rollout", "restart", "etcd")
		if err != nil {
			err = fmt.Errorf("%w: %s", err, out)
		}
		return err
	})
	l.stead("rollout", "status", "etcd", "--timeout", patience)
	for name, before := range kept {
		if m := l.mustMember(name); m.Status.Token == before.token || m.Status.Address != before.address {
			t.Errorf("%s after an update: %+v, before %+v", name, m.Status, before)
		}
	}
	stop()
	l.stead("delete", "set", "etcd", "--wait", "--timeout", patience)
}

func TestWhatIsWrongWithAnExternalEtcdIsTold(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	if l.store == nil {
		l.startStore()
	}
	c := l.certs
	for _, w := range []struct {
		name  string
		flags []string
		want  string // in the log of a server that goes on trying
		ends  string // what a server says that ends
	}{
		{name: "another authority", flags: c.flags("other-ca.pem", "stead"), want: "certificate signed by unknown authority"},
		{name: "no client certificate", flags: c.flags("ca.pem", ""), want: "--etcd-cert"},
		{name: "a stranger's client certificate", flags: c.flags("ca.pem", "stranger"), want: "--etcd-cert"},
		{name: "nobody there", flags: []string{"--etcd-endpoints", "https://127.0.0.1:1"}, want: "connection refused"},
		{name: "http where https is spoken", flags: []string{"--etcd-endpoints", "http://127.0.0.1:2379"}, want: "https://"},
		{name: "no such file", flags: c.flags("none.pem", "stead"), ends: "none.pem"},
		{name: "no certificates in the file", flags: c.flags("stead-key.pem", "stead"), ends: "contains no certificate"},
		{name: "the key of another certificate", flags: append(c.flags("ca.pem", ""),
			"--etcd-cert", filepath.Join(c.dir, "stead.pem"), "--etcd-key", filepath.Join(c.dir, "nameless-key.pem")), ends: "private key does not match"},
		{name: "a certificate without a key", flags: append(c.flags("ca.pem", ""), "--etcd-cert", filepath.Join(c.dir, "stead.pem")), ends: "must be used together"},
	} {
		t.Run(w.name, func(t *testing.T) {
			p := l.start("server-"+strings.ReplaceAll(w.name, " ", "-"), append([]string{steadBinary, "server",
				"--data-dir", l.path("wrong"), "--socket", l.path("wrong.sock")}, w.flags...)...)
			defer func() {
				if err := p.signal(syscall.SIGTERM); err != nil {
					t.Error(err)
				}
			}()
			l.eventually(time.Minute, "it is told", func() error {
				if said := p.said(); !strings.Contains(said, w.want) || !strings.Contains(said, w.ends) || len(said) == 0 {
					return errors.New(said)
				}
				return nil
			})
			t.Log(p.tail(3))
			if w.ends == "" {
				return
			}
			select {
			case <-p.done:
			case <-time.After(time.Minute):
				t.Error("it goes on")
			}
		})
	}
}

// TestAnExternalEtcdThatRefusesOurKeysIsTold turns etcd's own users on.
func TestAnExternalEtcdThatRefusesOurKeysIsTold(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	if l.store == nil {
		l.startStore()
	}
	call := func(token, path, body string) string {
		t.Helper()
		out, err := l.etcdctl(token, path, body)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		return out
	}
	key := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	grant := func(token, from, to string) {
		t.Helper()
		call(token, "auth/role/grant", fmt.Sprintf(`{"name":"stead","perm":{"permType":"READWRITE","key":%q,"range_end":%q}}`, key(from), key(to)))
	}
	call("", "auth/user/add", `{"name":"root","password":"root"}`)
	call("", "auth/role/add", `{"name":"root"}`)
	call("", "auth/user/grant", `{"user":"root","role":"root"}`)
	call("", "auth/user/add", `{"name":"stead","password":"stead"}`)
	call("", "auth/role/add", `{"name":"stead"}`)
	call("", "auth/user/grant", `{"user":"stead","role":"stead"}`)
	grant("", "/other/", "/other0")
	call("", "auth/enable", `{}`)
	out := call("", "auth/authenticate", `{"name":"root","password":"root"}`)
	_, token, _ := strings.Cut(out, `"token":"`)
	token, _, _ = strings.Cut(token, `"`)

	t.Log("without a right to our keys the server says so and waits")
	p := l.start("server", append([]string{steadBinary, "server", "--data-dir", l.path("server"), "--socket", l.Socket}, l.storeFlags...)...)
	l.server = p
	l.eventually(time.Minute, "it is told", func() error {
		if said := p.said(); !strings.Contains(said, "permission denied") || !strings.Contains(said, "/stead/v1/") {
			return errors.New(said)
		}
		return nil
	})
	t.Log(p.tail(3))

	t.Log("with a right to them, and to nothing else, it works")
	grant(token, "/stead/v1/", "/stead/v10")
	l.eventually(time.Minute, "the server answers", func() error {
		out, err := l.trySteadFor(time.Minute, "version")
		if err != nil {
			err = fmt.Errorf("%w: %s", err, out)
		}
		return err
	})
	l.startAgent()
	l.stead("image", "load", l.toolArchive())
	l.apply("life", lifeSet, "--wait", "--timeout", patience)
	if out := l.stead("status"); strings.Contains(out, "permission") {
		t.Errorf("status says %s", out)
	}
}
