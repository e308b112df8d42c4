package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// ownToken is the token of this program and of the controller manager.
const ownToken = "bench"

// cluster is the control plane.
type cluster struct {
	dir       string
	processes []*process
	etcd      *clientv3.Client
	metrics   string // of etcd
	api       *kubernetes.Clientset
	received  atomic.Int64 // bytes that api was sent
}

// startCluster returns when the API server is ready.
func startCluster(ctx context.Context, programs, dir string) (c *cluster, err error) {
	c = &cluster{dir: dir}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.stop())
		}
	}()
	ports, err := freePorts(3)
	if err != nil {
		return c, err
	}
	client, peer, secure := at("http", ports[0]), at("http", ports[1]), at("https", ports[2])
	c.metrics = client + "/metrics"
	if err := c.start(programs, "etcd", "--data-dir="+filepath.Join(dir, "etcd"), "--log-level=error",
		"--listen-client-urls="+client, "--advertise-client-urls="+client,
		"--listen-peer-urls="+peer, "--initial-advertise-peer-urls="+peer, "--initial-cluster=default="+peer); err != nil {
		return c, err
	}
	if c.etcd, err = clientv3.New(clientv3.Config{Endpoints: []string{client}, DialTimeout: time.Minute}); err != nil {
		return c, err
	}
	if err := c.until(ctx, "etcd serves", func(ctx context.Context) error { _, err := c.etcd.Get(ctx, "a"); return err }); err != nil {
		return c, err
	}
	if err := c.startServer(programs, client, ports[2]); err != nil {
		return c, err
	}
	ca := filepath.Join(dir, "apiserver.crt")
	if err := c.until(ctx, "kube-apiserver is ready", func(ctx context.Context) error {
		if err := c.connect(secure, ca); err != nil {
			return err
		}
		_, err := c.api.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
		return err
	}); err != nil {
		return c, err
	}
	config := filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(config, fmt.Appendf(nil, kubeconfig, secure, ca, ownToken), 0o600); err != nil {
		return c, err
	}
	return c, c.start(programs, "kube-controller-manager", "--kubeconfig="+config, "--controllers=statefulset-controller",
		"--leader-elect=false", "--secure-port=0", "--kube-api-qps=1000", "--kube-api-burst=2000")
}

const kubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: %q, certificate-authority: %q}}]
users: [{name: u, user: {token: %q}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`

func at(scheme string, port int) string { return fmt.Sprintf("%s://127.0.0.1:%d", scheme, port) }

func (c *cluster) startServer(programs, etcd string, port int) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	keyFile, tokens := filepath.Join(c.dir, "accounts.key"), filepath.Join(c.dir, "tokens.csv")
	if err := errors.Join(
		os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), 0o600),
		os.WriteFile(tokens, []byte(ownToken+",bench,bench,system:masters\n"), 0o600),
	); err != nil {
		return err
	}
	return c.start(programs, "kube-apiserver", "--etcd-servers="+etcd, "--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port),
		"--advertise-address=192.0.2.1", "--endpoint-reconciler-type=none", "--cert-dir="+c.dir, "--token-auth-file="+tokens,
		"--service-account-issuer=https://bench.invalid", "--service-account-key-file="+keyFile, "--service-account-signing-key-file="+keyFile,
		"--service-cluster-ip-range=10.96.0.0/16", "--authorization-mode=AlwaysAllow", "--disable-admission-plugins=ServiceAccount",
		"--enable-priority-and-fairness=false", "--max-requests-inflight=4000", "--max-mutating-requests-inflight=4000",
		"--http2-max-streams-per-connection=4000")
}

// connect makes the client, which has no limit on its rate and speaks protobuf.
func (c *cluster) connect(url, ca string) (err error) {
	if _, err := os.Stat(ca); err != nil {
		return err
	}
	config := &rest.Config{
		Host: url, BearerToken: ownToken, TLSClientConfig: rest.TLSClientConfig{CAFile: ca}, QPS: -1,
		ContentConfig: rest.ContentConfig{ContentType: "application/vnd.kubernetes.protobuf", AcceptContentTypes: "application/vnd.kubernetes.protobuf,application/json"},
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
			return counted{conn, &c.received}, err
		},
	}
	c.api, err = kubernetes.NewForConfig(config)
	return err
}

// counted counts what is received.
type counted struct {
	net.Conn
	n *atomic.Int64
}

// Read implements net.Conn.
func (c counted) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.n.Add(int64(n))
	return n, err
}

// freePorts are TCP ports of loopback that nobody listened at a moment ago.
func freePorts(n int) (ports []int, err error) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}

// until asks again and again until ok succeeds, for up to five minutes; it fails when a process has ended.
func (c *cluster) until(ctx context.Context, what string, ok func(context.Context) error) error {
	for deadline := time.Now().Add(5 * time.Minute); ; {
		try, cancel := context.WithTimeout(ctx, 5*time.Second)
		err := ok(try)
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(50 * time.Millisecond):
		}
		if gone := c.gone(); gone != nil {
			return gone
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s: not within five minutes: %w", what, err)
		}
	}
}

// process is a program of the control plane.
type process struct {
	name string
	cmd  *exec.Cmd
	log  string        // file
	end  chan struct{} // closed when it has ended
}

func (c *cluster) start(programs, name string, args ...string) error {
	p := &process{name: name, cmd: exec.Command(filepath.Join(programs, name), args...), log: filepath.Join(c.dir, name+".log"), end: make(chan struct{})}
	log, err := os.Create(p.log)
	if err != nil {
		return err
	}
	defer log.Close()
	p.cmd.Stdout, p.cmd.Stderr = log, log
	// A group of its own: Ctrl-C reaches this program alone, which ends the others in turn. Were it killed, they end too.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		return err
	}
	c.processes = append(c.processes, p)
	go func() {
		defer close(p.end)
		_ = p.cmd.Wait() // it is asked for its state
	}()
	return nil
}

// gone says which process has ended, with the end of its log.
func (c *cluster) gone() error {
	for _, p := range c.processes {
		select {
		case <-p.end:
			text, err := os.ReadFile(p.log)
			lines := strings.Split(string(bytes.TrimSpace(text)), "\n")
			return errors.Join(fmt.Errorf("%s ended: %s\n%s", p.name, p.cmd.ProcessState, strings.Join(lines[max(0, len(lines)-15):], "\n")), err)
		default:
		}
	}
	return nil
}

// stop ends all, the last first, and waits for them.
func (c *cluster) stop() (err error) {
	if c.etcd != nil {
		err = c.etcd.Close()
	}
	for i := len(c.processes) - 1; i >= 0; i-- {
		p := c.processes[i]
		_ = p.cmd.Process.Signal(syscall.SIGTERM) // one that has ended is what is wanted
		select {
		case <-p.end:
		case <-time.After(5 * time.Second):
			_ = p.cmd.Process.Kill()
			<-p.end
		}
	}
	c.processes = nil
	return err
}
