package probe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// Kubernetes: an exec hook succeeds with exit code 0. What the runtime cannot say is tried again.
func TestAHooksCommand(t *testing.T) {
	type answer struct {
		code int
		err  error
	}
	away := answer{err: fmt.Errorf("exec: %w", runtime.ErrUnavailable)}
	for _, c := range []struct {
		name    string
		answers []answer
		want    string
		after   time.Duration
	}{
		{"it succeeds", []answer{{}}, "", 0},
		{"it fails, and says why", []answer{{code: 3}}, "exit code 3: no peers", 0},
		{"there is no such program", []answer{{err: runtime.ErrBadSpec}}, runtime.ErrBadSpec.Error(), 0},
		{"the runtime does not answer at first", []answer{away, away, {code: 1}}, "exit code 1: no peers", 2 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun, calls := time.Now(), 0
				p := New(Config{Exec: func(_ context.Context, of runtime.ContainerID, e runtime.Exec) (int, error) {
					if of != id || !slices.Equal(e.Command, []string{"leave", "now"}) || e.Bounded {
						t.Errorf("ran %+v in %v", e, of)
					}
					fmt.Fprintln(e.Stderr, "no peers")
					a := c.answers[calls]
					calls++
					return a.code, a.err
				}})
				err := p.Hook(t.Context(), Target{ID: id}, spec.Hook{Exec: &spec.ExecAction{Command: []string{"leave", "now"}}})
				if message(err) != c.want || calls != len(c.answers) || time.Since(begun) != c.after {
					t.Errorf("got %v after %d calls and %v", err, calls, time.Since(begun))
				}
			})
		})
	}
}

func TestAHookThatSleeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		p, sleep := New(Config{}), spec.Hook{Sleep: &spec.SleepAction{Seconds: 7}}
		if err := p.Hook(t.Context(), Target{}, sleep); err != nil || time.Since(begun) != 7*time.Second {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := p.Hook(ctx, Target{}, sleep); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("broken off: %v", err)
		}
		if err := p.Hook(t.Context(), Target{}, spec.Hook{TCPSocket: &spec.TCPSocket{}}); err == nil {
			t.Error("a tcpSocket hook succeeds")
		}
	})
}

// Kubernetes: any answer is success, and HTTPS that is answered in plain HTTP is asked for again so.
func TestAHookByHTTP(t *testing.T) {
	var seen []string
	mux := http.NewServeMux()
	mux.HandleFunc("/fail", func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, fmt.Sprint(r.URL.Path, " ", r.UserAgent(), " ", r.Header.Get("Authorization"), " ", r.Header.Get("X-A"), " ", r.TLS != nil))
		w.WriteHeader(503)
	})
	plain, secure := httptest.NewServer(mux), httptest.NewTLSServer(mux)
	defer plain.Close()
	defer secure.Close()
	call := func(s *httptest.Server, scheme string) error {
		target := Target{ID: id, Address: netip.MustParseAddr("127.0.0.1")}
		return New(Config{}).Hook(t.Context(), target, spec.Hook{HTTPGet: &spec.HTTPGet{
			Path: "/fail", Scheme: scheme, Port: scalar.PortRef{Number: int32(s.Listener.Addr().(*net.TCPAddr).Port)},
			HTTPHeaders: []spec.HTTPHeader{{Name: "Authorization", Value: "key"}, {Name: "X-A", Value: "b"}},
		}})
	}
	for _, err := range []error{call(plain, "HTTP"), call(secure, "HTTPS"), call(plain, "HTTPS")} {
		if err != nil {
			t.Error(err)
		}
	}
	want := []string{"/fail stead-lifecycle key b false", "/fail stead-lifecycle key b true", "/fail stead-lifecycle  b false"}
	if !slices.Equal(seen, want) {
		t.Errorf("got %q, want %q", seen, want)
	}
	plain.Close()
	if err := call(plain, "HTTP"); message(err) != "dial: connect: connection refused" {
		t.Errorf("nobody listens: %v", err)
	}
}
