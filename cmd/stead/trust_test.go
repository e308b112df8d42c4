package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stead-project/stead/agent/home"
	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/agent/runtime/fakert"
	"github.com/stead-project/stead/server"
	"github.com/stead-project/stead/server/access/accesstest"
	"github.com/stead-project/stead/server/seal"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/trust"
)

func reachable(c *server.Config) { c.Listen = "127.0.0.1:0" }

// must runs a command line that is to be done, and returns what it printed.
func (c *cluster) must(args ...string) string {
	c.t.Helper()
	code, out := c.stead(args...)
	if code != exitDone {
		c.t.Fatalf("stead %s: code %d: %s", strings.Join(args, " "), code, out)
	}
	return strings.TrimSpace(out)
}

// refused runs a command line that is to be refused with these words.
func (c *cluster) refused(words string, args ...string) {
	c.t.Helper()
	if code, out := c.stead(args...); code != exitRefused || !strings.Contains(out, words) {
		c.t.Errorf("stead %s: code %d: %s; want %q", strings.Join(args, " "), code, out, words)
	}
}

// elsewhere runs the agent of a host that reaches servers by network, as 'stead agent
// --join' does. stop ends it and returns its error.
func (c *cluster) elsewhere(name spec.NodeName, o hostOptions) (stop func() error) {
	c.t.Helper()
	return c.elsewhereOn(fakert.New(), "boot-1", name, o)
}

// elsewhereOn is elsewhere on a machine that may have been there before, in this boot.
func (c *cluster) elsewhereOn(host *fakert.Host, boot spec.BootID, name spec.NodeName, o hostOptions) (stop func() error) {
	c.t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(c.t.Context()))
	end := make(chan error, 1)
	go func() {
		end <- c.node(ctx, name, boot, host, func(ctx context.Context, at *home.Home) (way, error) {
			return reach(ctx, o, at, nil, c.log)
		})
	}()
	stopped := false
	stop = func() error {
		if stopped {
			return nil
		}
		stopped = true
		cancel()
		return <-end
	}
	c.t.Cleanup(func() { _ = stop() })
	return stop
}

// barred is an agent that must not get in; the words are why.
func (c *cluster) barred(words string, name spec.NodeName, o hostOptions) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	at, err := home.Open(c.t.TempDir(), name)
	if err != nil {
		c.t.Fatal(err)
	}
	defer at.Close()
	if _, err := reach(ctx, o, at, nil, c.log); err == nil || !strings.Contains(err.Error(), words) {
		c.t.Errorf("%s: got %v, want %q", name, err, words)
	}
}

func (c *cluster) nodeIs(name, state string) func() bool {
	return func() bool {
		_, out := c.stead("get", "nodes")
		for line := range strings.Lines(out) {
			if words := strings.Fields(line); len(words) > 1 && words[0] == name {
				return words[1] == state
			}
		}
		return false
	}
}

func TestEveryVerbOfTrustEndsWithItsCode(t *testing.T) {
	newCluster(t, nil, reachable).play("trust.txt")
}

func TestAHostJoinsByTokenAndIsThrownOut(t *testing.T) {
	c := newCluster(t, nil, reachable, func(c *server.Config) { c.SessionTTL = 2 * time.Second })
	token := c.must("token", "create")
	o := hostOptions{Join: c.server.Addresses(), Token: token}
	stop := c.elsewhere("host-b", o)
	c.until("host-b has joined", c.nodeIs("host-b", "Ready"))
	kept := filepath.Join(c.dir, "host-b", "credential.json")
	if info, err := os.Stat(kept); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("its key: %v, %v", info, err)
	}
	first, err := trust.Load(kept)
	if err != nil {
		t.Fatal(err)
	}

	c.barred("the join token is not known", "host-c", o)
	o.Token = c.must("token", "create")
	c.barred("belongs to another machine", "host-b", o)
	o.Token = c.must("token", "create", "--node", "host-d")
	c.barred("the join token is not known", "host-c", o)
	o.Token = c.must("token", "create", "--ttl", "1s")
	id, _, _ := strings.Cut(o.Token, ".")
	c.until("its time is over", func() bool { return !strings.Contains(c.must("token", "ls"), id) })
	c.barred("the join token is not known", "host-c", o)
	o.Token = c.must("token", "create")
	id, _, _ = strings.Cut(o.Token, ".")
	c.must("token", "revoke", id)
	c.barred("the join token is not known", "host-c", o)
	o.Token = ""
	c.barred("give it a join token", "host-c", o)

	// The next start needs no token, and starts with the next certificate.
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	c.elsewhere("host-b", hostOptions{Join: c.server.Addresses()})
	c.until("the certificate was renewed", func() bool {
		now, err := trust.Load(kept)
		return err == nil && !bytes.Equal(now.Certificate, first.Certificate)
	})
	c.until("host-b is back", c.nodeIs("host-b", "Ready"))

	c.must("node", "revoke", "host-b")
	c.until("host-b is out", func() bool { return !c.nodeIs("host-b", "Ready")() })
	c.refused("there is no node nobody", "node", "revoke", "nobody")
}

// A node that was off until its certificate had ended comes back by a token that names
// it, and by no other.
func TestANodeWhoseCertificateEndedComesBackByATokenOfItsOwn(t *testing.T) {
	c := newCluster(t, nil, reachable, func(c *server.Config) { c.SessionTTL = 2 * time.Second })
	o := hostOptions{Join: c.server.Addresses(), Token: c.must("token", "create")}
	stop := c.elsewhere("host-b", o)
	c.until("host-b has joined", c.nodeIs("host-b", "Ready"))
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	key, err := seal.Load(filepath.Join(c.dir, "secret.key"))
	if err != nil {
		t.Fatal(err)
	}
	authority := accesstest.Open(t, c.store, key)
	kept := filepath.Join(c.dir, "host-b", "credential.json")
	mine, err := trust.Load(kept)
	if err != nil {
		t.Fatal(err)
	}
	who, err := mine.Subject()
	if err != nil {
		t.Fatal(err)
	}
	request, err := mine.Request()
	if err != nil {
		t.Fatal(err)
	}
	ended, err := authority.Issue(request, who, -time.Second)
	if err == nil {
		err = mine.Take(ended, authority.Certificate())
	}
	if err == nil {
		err = mine.Save(kept)
	}
	if err != nil {
		t.Fatal(err)
	}

	c.until("host-b is silent", func() bool { return c.sessionAt("host-b") == "" })
	o.Token = c.must("token", "create")
	id, _, _ := strings.Cut(o.Token, ".")
	stop = c.elsewhere("host-b", o)
	c.until("it has asked", func() bool { return strings.Contains(c.logs.String(), "continuing with the present certificate") })
	c.until("it is refused", func() bool { return strings.Contains(c.logs.String(), "certificate not renewed") })
	for line := range strings.Lines(c.must("token", "ls")) {
		if words := strings.Fields(line); words[0] == id && words[2] != "-" {
			t.Errorf("the token of anybody was used: %s", line)
		}
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	o.Token = c.must("token", "create", "--node", "host-b")
	c.elsewhere("host-b", o)
	c.until("host-b is back", func() bool { return c.sessionAt("host-b") != "" })
}

func TestAClientFileDoesWhatRootDoesUntilItIsRevoked(t *testing.T) {
	c := newCluster(t, nil, reachable)
	file := filepath.Join(t.TempDir(), "ann.json")
	said := c.must("client", "create", "-o", file, "--name", "ann")
	id := said[strings.LastIndex(said, " ")+1:]
	c.refused("already exists", "client", "create", "-o", file)

	ann := &cluster{t: t, config: file}
	ann.must("apply", "-f", "testdata/db.yaml", "--wait", "--timeout", "2m")
	ann.must("scale", "db", "--replicas", "4")
	if out := c.must("describe", "set", "db"); !strings.Contains(out, "ann") {
		t.Errorf("nobody says that ann did it: %s", out)
	}
	c.host.OnExec(func(_ context.Context, _ runtime.ContainerID, e runtime.Exec) (int, error) {
		_, err := e.Stdout.Write([]byte(e.Command[0]))
		return 0, err
	})
	if out := ann.must("exec", "db-0", "--", "hello"); out != "hello" {
		t.Errorf("exec: got %q", out)
	}
	ann.refused("this is not for admins", "client", "create", "-o", file+"2")
	if code, out := ann.stead("--server", c.server.Addresses()[0], "get", "nodes"); code != exitDone {
		t.Errorf("by address: %d %s", code, out)
	}
	ann.refused("reach server 127.0.0.1:1", "--server", "127.0.0.1:1", "get", "nodes")

	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	ann.refused("is open to others", "get", "nodes")
	if err := os.Chmod(file, 0o600); err != nil {
		t.Fatal(err)
	}
	c.must("client", "revoke", id)
	ann.refused("was revoked", "get", "nodes")
}

// TestWhoWasLetInByARevokedClientStaysUnlessToldOtherwise: both are named, and --also ends what else the client opened.
func TestWhoWasLetInByARevokedClientStaysUnlessToldOtherwise(t *testing.T) {
	c := newCluster(t, nil, reachable, func(c *server.Config) { c.SessionTTL = 2 * time.Second })
	letIn := func(client string, node spec.NodeName) (id string) {
		file := filepath.Join(t.TempDir(), client+".json")
		said := c.must("client", "create", "-o", file, "--name", client)
		by := &cluster{t: t, config: file}
		c.elsewhere(node, hostOptions{Join: c.server.Addresses(), Token: by.must("token", "create")})
		c.until("the node has joined", c.nodeIs(string(node), "Ready"))
		return said[strings.LastIndex(said, " ")+1:]
	}
	ann, bob := letIn("ann", "host-b"), letIn("bob", "host-c")
	if out := c.must("client", "revoke", ann); !strings.Contains(out, "node host-b joined with one of its tokens and stays; if it should not, run 'stead node revoke host-b'") {
		t.Errorf("without --also: %s", out)
	}
	if out := c.must("client", "revoke", bob, "--also"); !strings.Contains(out, "node host-c joined with one of its tokens and is revoked") {
		t.Errorf("with --also: %s", out)
	}
	c.until("host-c is out", func() bool { return !c.nodeIs("host-c", "Ready")() })
	if !c.nodeIs("host-b", "Ready")() {
		t.Error("host-b is out, too")
	}
}

// TestRolesEndWhereTheyAreLimited: what an operator of shop applies elsewhere is refused whole, and a viewer sees no Secret.
func TestRolesEndWhereTheyAreLimited(t *testing.T) {
	c := newCluster(t, nil, reachable)
	as := func(name string, more ...string) *cluster {
		file := filepath.Join(t.TempDir(), name+".json")
		c.must(append([]string{"client", "create", "-o", file, "--name", name, "--servers", c.server.Addresses()[0]}, more...)...)
		return &cluster{t: t, config: file}
	}
	bob := as("bob", "--role", "operator", "--in-namespace", "shop")
	eve := as("eve", "--role", "viewer")
	c.refused("is not a role", "client", "create", "-o", filepath.Join(t.TempDir(), "x"), "--name", "x", "--role", "king")
	c.refused("is not limited to namespaces", "client", "create", "-o", filepath.Join(t.TempDir(), "x"), "--name", "x", "--in-namespace", "shop")

	two := filepath.Join(t.TempDir(), "two.yaml")
	content := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: shop}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n"
	if err := os.WriteFile(two, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	bob.refused("configmap default/b is not in the namespaces in which you may write: shop; nothing was written", "apply", "-f", two)
	bob.refused("configmap default/b is not in the namespaces", "apply", "-f", two, "--dry-run")
	bob.refused("there is no configmap a", "get", "configmap", "a", "-n", "shop")
	bob.must("apply", "-f", "testdata/files.yaml", "-n", "shop")
	bob.must("apply", "-f", "testdata/db.yaml", "-n", "shop", "--wait", "--timeout", "2m")
	bob.must("get", "secret", "pass", "-n", "shop", "-o", "yaml")
	bob.refused("you are operator in shop", "get", "sets")
	bob.refused("you are operator in shop", "get", "sets", "-A")
	bob.refused("this is not for operators", "node", "cordon", "host-a")
	bob.refused("this is not for operators", "token", "create")
	bob.refused("this is not for operators", "audit")

	eve.must("get", "members", "-A")
	eve.must("get", "node", "host-a")
	eve.refused("viewers do not see Secrets", "get", "secrets", "-n", "shop")
	eve.refused("this is not for viewers", "scale", "db", "--replicas", "0", "-n", "shop")
	eve.refused("this is not for viewers", "exec", "db-0", "-n", "shop", "--", "id")
	if out := c.must("describe", "set", "db", "-n", "shop"); !strings.Contains(out, "bob") {
		t.Errorf("it is not told who did it: %s", out)
	}
}
