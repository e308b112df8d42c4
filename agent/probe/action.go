package probe

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

var succeeded = Result{Outcome: Success}

func failed(format string, args ...any) Result {
	return Result{Outcome: Failure, Cause: fmt.Sprintf(format, args...)}
}

// execute runs a command; exit 0 is success. An error of the runtime says nothing
// about the container; a time-out is the container's, unless the runtime says that
// it was its own (runtime.ErrUnavailable).
func (p *Prober) execute(ctx context.Context, id runtime.ContainerID, command []string, timeout time.Duration) Result {
	if p.c.Exec == nil {
		return Result{Outcome: Unknown, Cause: "commands cannot be run here"}
	}
	var out, said head
	code, err := p.c.Exec(ctx, id, runtime.Exec{Command: command, Stdout: io.MultiWriter(&out, &said), Stderr: &out, Bounded: true})
	switch {
	case err == nil && code == 0:
		return Result{Outcome: Success, Term: termIn(said.line())}
	case ctx.Err() != nil && !errors.Is(err, runtime.ErrUnavailable):
		return failed("not done within %v", timeout)
	case errors.Is(err, runtime.ErrBadSpec): // e.g. there is no such program: that is the container's
		return Result{Outcome: Failure, Cause: "the command cannot be started", Detail: err.Error()}
	case err != nil:
		return Result{Outcome: Unknown, Cause: "the command could not be run", Detail: err.Error()}
	}
	return Result{Outcome: Failure, Cause: fmt.Sprintf("exit code %d", code), Detail: out.line()}
}

// termIn is the number that line is, or 0.
func termIn(line string) uint64 {
	term, err := strconv.ParseUint(line, 10, 64)
	if err != nil {
		return 0
	}
	return term
}

// connect opens a connection and closes it.
func (p *Prober) connect(ctx context.Context, t Target, action *spec.TCPSocket, timeout time.Duration) Result {
	address, err := t.address(action.Host, action.Port)
	if err != nil {
		return failed("%v", err)
	}
	conn, err := p.c.Dial(ctx, "tcp", address)
	if err != nil {
		return failed("%s", cause(ctx, err, timeout))
	}
	_ = conn.Close()
	return succeeded
}

// get asks by HTTP; a status from 200 to 399 is success. Redirects are followed on
// the same host only; one that leads elsewhere is an answer, and so success.
func (p *Prober) get(ctx context.Context, t Target, action *spec.HTTPGet, timeout time.Duration) Result {
	req, err := t.request(ctx, action)
	if err != nil {
		return failed("%v", err)
	}
	client := http.Client{Transport: p.http, CheckRedirect: sameHost}
	resp, err := client.Do(req)
	if err != nil {
		return failed("%s", cause(ctx, err, timeout))
	}
	_, _ = io.CopyN(io.Discard, resp.Body, 10<<10) // a little, so that the server's answer is not cut off at once
	_ = resp.Body.Close()
	if resp.StatusCode < 200 || resp.StatusCode > 399 {
		return failed("status %d", resp.StatusCode)
	}
	return succeeded
}

// probeAgent is what probes call themselves unless the manifest says otherwise.
const probeAgent = "stead-probe"

func (t Target) request(ctx context.Context, action *spec.HTTPGet) (*http.Request, error) {
	address, err := t.address(action.Host, action.Port)
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(action.Path) // with its query
	if err != nil {
		return nil, fmt.Errorf("path %q: %w", action.Path, err)
	}
	u.Host, u.Scheme = address, strings.ToLower(action.Scheme)
	if u.Scheme == "" {
		u.Scheme = "http"
	}
	if u.Path == "" || u.Path[0] != '/' {
		u.Path = "/" + u.Path
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", probeAgent)
	req.Header.Set("Accept", "*/*")
	for i, h := range action.HTTPHeaders {
		if strings.EqualFold(h.Name, "Host") {
			req.Host = h.Value
			continue
		}
		same := func(other spec.HTTPHeader) bool { return strings.EqualFold(other.Name, h.Name) }
		if !slices.ContainsFunc(action.HTTPHeaders[:i], same) {
			req.Header.Del(h.Name) // the manifest's instead of ours
		}
		req.Header.Add(h.Name, h.Value)
	}
	return req, nil
}

// address is host:port; the host is the member's unless named, and a port's name is
// looked up among the container's ports.
func (t Target) address(host string, port scalar.PortRef) (string, error) {
	if host == "" {
		host = t.Address.String()
	}
	number := port.Number
	if port.Name != "" {
		for _, p := range t.Container.Ports {
			if p.Name == port.Name {
				number = p.ContainerPort
			}
		}
	}
	if number <= 0 {
		return "", fmt.Errorf("the container has no port %s", port)
	}
	return net.JoinHostPort(host, strconv.Itoa(int(number))), nil
}

func newTransport(dial func(context.Context, string, string) (net.Conn, error)) http.RoundTripper {
	return &http.Transport{
		DialContext:            dial,
		DisableKeepAlives:      true, // each probe is a connection of its own
		DisableCompression:     true,
		TLSClientConfig:        &tls.Config{InsecureSkipVerify: true}, // as Kubernetes: it asks whether it answers, not who
		MaxResponseHeaderBytes: 64 << 10,
	}
}

func sameHost(next *http.Request, before []*http.Request) error {
	if next.URL.Hostname() != before[0].URL.Hostname() {
		return http.ErrUseLastResponse
	}
	if len(before) >= 10 {
		return errors.New("more than 10 redirects")
	}
	return nil
}

// cause says why a connection failed, without what differs each time (such as the
// port on our side).
func cause(ctx context.Context, err error, timeout time.Duration) string {
	if ctx.Err() != nil {
		return fmt.Sprintf("no answer within %v", timeout)
	}
	if outer, ok := errors.AsType[*url.Error](err); ok {
		err = outer.Err
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op.Op + ": " + op.Err.Error()
	}
	return err.Error()
}

// head keeps the beginning of what is written to it, from several writers at once.
type head struct {
	mu   sync.Mutex
	text []byte
}

func (h *head) Write(p []byte) (int, error) {
	const most = 200
	h.mu.Lock()
	defer h.mu.Unlock()
	h.text = append(h.text, p[:min(most-len(h.text), len(p))]...)
	return len(p), nil
}

// line is the first line that holds something, as plain text.
func (h *head) line() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	line, _, _ := strings.Cut(strings.TrimSpace(string(h.text)), "\n")
	return strings.ToValidUTF8(strings.TrimSpace(line), "?")
}
