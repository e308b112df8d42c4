package etcdstore_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stead-project/stead/store/etcdstore"
	"github.com/stead-project/stead/store/storetest"
)

// TestConformanceOfAnExternalServer runs the suite against the etcd on PATH (such
// as Debian's 3.4), over loopback.
func TestConformanceOfAnExternalServer(t *testing.T) {
	if os.Getenv("STEAD_ROOT_TESTS") != "1" {
		t.Skip("needs STEAD_ROOT_TESTS=1")
	}
	binary, err := exec.LookPath("etcd")
	if err != nil {
		t.Skip("needs etcd on PATH (Debian package etcd-server)")
	}
	client, peer := freePort(t), freePort(t)
	cmd := exec.Command(binary, "--data-dir", t.TempDir(), "--name", "external",
		"--listen-client-urls", client, "--advertise-client-urls", client,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
		"--initial-cluster", "external="+peer, "--heartbeat-interval", "20", "--election-timeout", "100")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	config := etcdstore.Config{Endpoints: []string{client}, Timeout: 20 * time.Second}
	s, err := etcdstore.New(config)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	st, err := s.Status(t.Context()) // waits for the connection
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("etcd %s", st.Version)
	storetest.Run(t, opener(config))
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return fmt.Sprintf("http://%s", l.Addr())
}
