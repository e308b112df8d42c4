package probe

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

// once asks a real server on loopback.
func once(t *testing.T, server *httptest.Server, probe spec.Probe) Result {
	t.Helper()
	port := server.Listener.Addr().(*net.TCPAddr).Port
	target := Target{ID: id, Address: netip.MustParseAddr("127.0.0.1"), Container: spec.Container{
		Ports: []spec.ContainerPort{{Name: "web", ContainerPort: int32(port)}},
	}}
	return New(Config{}).once(t.Context(), target, probe)
}

func TestHTTP(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("/status/200", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(200) })
	mux.HandleFunc("/status/399", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(399) })
	mux.HandleFunc("/status/400", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(400) })
	mux.HandleFunc("/status/503", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) })
	mux.HandleFunc("/here", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/status/503", http.StatusFound) })
	mux.HandleFunc("/round", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/round", http.StatusFound) })
	mux.HandleFunc("/away", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://127.0.0.2:1/", http.StatusFound)
	})
	mux.HandleFunc("/headers", func(w http.ResponseWriter, r *http.Request) {
		if r.Host != "db.example" || r.Header.Get("X-Probe") != "yes" || r.Header.Get("User-Agent") != "mine" || r.URL.RawQuery != "a=1" {
			w.WriteHeader(418)
		}
	})
	mux.HandleFunc("/endless", func(w http.ResponseWriter, _ *http.Request) {
		for {
			if _, err := w.Write(make([]byte, 4096)); err != nil {
				return
			}
		}
	})
	plain, secure := httptest.NewServer(mux), httptest.NewTLSServer(mux)
	defer plain.Close()
	defer secure.Close()
	web := scalar.PortRef{Name: "web"}
	headers := []spec.HTTPHeader{{Name: "host", Value: "db.example"}, {Name: "X-Probe", Value: "yes"}, {Name: "User-Agent", Value: "mine"}}
	for _, c := range []struct {
		name   string
		server *httptest.Server
		get    spec.HTTPGet
		want   Result
	}{
		{"200 is success", plain, spec.HTTPGet{Path: "/status/200", Port: web}, succeeded},
		{"399 is success", plain, spec.HTTPGet{Path: "/status/399", Port: web}, succeeded},
		{"400 is failure", plain, spec.HTTPGet{Path: "/status/400", Port: web}, failed("status 400")},
		{"a path needs no slash", plain, spec.HTTPGet{Path: "status/200", Port: web}, succeeded},
		{"no path is the root", plain, spec.HTTPGet{Port: web}, failed("status 404")},
		{"https is not verified", secure, spec.HTTPGet{Path: "/status/200", Port: web, Scheme: "HTTPS"}, succeeded},
		{"a redirect on the host is followed", plain, spec.HTTPGet{Path: "/here", Port: web}, failed("status 503")},
		{"a redirect elsewhere is an answer", plain, spec.HTTPGet{Path: "/away", Port: web}, succeeded},
		{"redirects end", plain, spec.HTTPGet{Path: "/round", Port: web}, failed("more than 10 redirects")},
		{"headers, host and query are sent", plain, spec.HTTPGet{Path: "/headers?a=1", Port: web, HTTPHeaders: headers}, succeeded},
		{"an endless body is not read", plain, spec.HTTPGet{Path: "/endless", Port: web}, succeeded},
		{"an unknown port is named", plain, spec.HTTPGet{Port: scalar.PortRef{Name: "x"}}, failed("the container has no port x")},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := once(t, c.server, spec.Probe{HTTPGet: &c.get, TimeoutSeconds: 5}); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestTCPAndRefusedConnections(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	tcp := spec.Probe{TCPSocket: &spec.TCPSocket{Port: scalar.PortRef{Name: "web"}}}
	web := spec.Probe{HTTPGet: &spec.HTTPGet{Port: scalar.PortRef{Name: "web"}}}
	if got := once(t, server, tcp); got != succeeded {
		t.Errorf("open: got %+v, want %+v", got, succeeded)
	}
	server.Close()
	for _, probe := range []spec.Probe{tcp, web} {
		if got, want := once(t, server, probe), failed("dial: connect: connection refused"); got != want {
			t.Errorf("closed: got %+v, want %+v", got, want)
		}
	}
}

func TestSilenceIsAFailureAfterTheTimeOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ends []net.Conn
		p := New(Config{Dial: func(_ context.Context, network, address string) (net.Conn, error) {
			if network != "tcp" || address != "10.88.0.7:80" {
				t.Errorf("dialled %s %s", network, address)
			}
			near, far := net.Pipe()
			ends = append(ends, far)
			go func() { // takes the question, gives no answer
				buffer := make([]byte, 1024)
				for {
					if _, err := far.Read(buffer); err != nil {
						return
					}
				}
			}()
			return near, nil
		}})
		target := Target{ID: id, Address: netip.MustParseAddr("10.88.0.7")}
		begun := time.Now()
		got := p.once(t.Context(), target, spec.Probe{HTTPGet: &spec.HTTPGet{Port: scalar.PortRef{Number: 80}}, TimeoutSeconds: 3})
		if want := failed("no answer within 3s"); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
		if took := time.Since(begun); took != 3*time.Second {
			t.Errorf("it took %v, want 3s", took)
		}
		for _, end := range ends {
			_ = end.Close()
		}
	})
}

// TestACommandThatSucceedsSaysATerm: a number on the first line of its standard output.
func TestACommandThatSucceedsSaysATerm(t *testing.T) {
	for _, c := range []struct {
		stdout, stderr string
		want           uint64
	}{
		{"7", "", 7}, {"\n  18446744073709551615 \n8", "", 1<<64 - 1}, {"12\n", "a warning\n", 12}, {"", "7", 0},
		{"term 7", "", 0}, {"-7", "", 0}, {"18446744073709551616", "", 0}, {"", "", 0}, {strings.Repeat("0", 300) + "7", "", 0},
	} {
		p := New(Config{Exec: func(_ context.Context, _ runtime.ContainerID, e runtime.Exec) (int, error) {
			_, _ = e.Stderr.Write([]byte(c.stderr))
			_, _ = e.Stdout.Write([]byte(c.stdout))
			return 0, nil
		}})
		if got := p.once(t.Context(), Target{ID: id}, *command("x", 0, 0)); got != (Result{Outcome: Success, Term: c.want}) {
			t.Errorf("%q: got %+v, want term %d", c.stdout, got, c.want)
		}
	}
}

func TestExecKeepsTheFirstLineOfAFailure(t *testing.T) {
	for _, c := range []struct {
		name   string
		code   int
		err    error
		output string
		want   Result
	}{
		{"zero is success", 0, nil, "fine", succeeded},
		{"the first line tells why", 3, nil, "\n no quorum\xff \nmore", Result{Outcome: Failure, Cause: "exit code 3", Detail: "no quorum?"}},
		{"much output is cut", 1, nil, strings.Repeat("x", 1<<20), Result{Outcome: Failure, Cause: "exit code 1", Detail: strings.Repeat("x", 200)}},
		{"a command that is not there is a failure", 0, runtime.ErrBadSpec, "", Result{Outcome: Failure, Cause: "the command cannot be started", Detail: runtime.ErrBadSpec.Error()}},
		{"an error of the runtime is unknown", 0, errors.New("no such file"), "", Result{Outcome: Unknown, Cause: "the command could not be run", Detail: "no such file"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := New(Config{Exec: func(_ context.Context, got runtime.ContainerID, e runtime.Exec) (int, error) {
				if got != id {
					t.Errorf("ran in %v", got)
				}
				for chunk := range strings.SplitAfterSeq(c.output, "\n") {
					_, _ = e.Stderr.Write([]byte(chunk))
				}
				return c.code, c.err
			}})
			if got := p.once(t.Context(), Target{ID: id}, *command("x", 0, 0)); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}
