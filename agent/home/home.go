// Package home is where a node lives on its machine: the root directory on disk, which says
// who the node is and lets one agent use it, the run directory on tmpfs, and the boot that
// both clocks count from.
package home

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/stead-project/stead/agent/ledger"
	"github.com/stead-project/stead/internal/durable"
	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/spec"
)

// ErrTaken: another agent uses the root.
var ErrTaken = errors.New("another agent uses this root or runs this node")

// ErrForeignCluster: the node belongs to another cluster than the server.
var ErrForeignCluster = errors.New("the node belongs to another cluster")

// nodeDoc is the form of node.json.
type nodeDoc struct {
	Name    spec.NodeName `json:"name"`
	UID     spec.UID      `json:"uid"`
	Cluster string        `json:"cluster,omitempty"`
	// Domain and CIDR are the cluster's, kept so that an agent starts without a server.
	Domain string `json:"domain,omitempty"`
	CIDR   string `json:"cidr,omitempty"`
	// ServiceCIDR is that of services' addresses.
	ServiceCIDR string `json:"serviceCIDR,omitempty"`
}

// Home is a node's durable memory: its root directory with node.json, the ledger
// and the lock that makes this process its only user.
type Home struct {
	root string
	lock *os.File
	host net.Listener // of the node on this host; nothing ever connects

	mu     sync.Mutex
	node   nodeDoc
	newest *os.File // of KeepNewest; nil: not written yet
}

// Open locks root, making it at the first start, and reads who the node is; a new
// node gets a random uid. Of a node one agent runs on a host, whatever its root.
// Errors: ErrTaken, ledger.ErrLost. The name must be the
// one that the root was made with.
func Open(root string, name spec.NodeName) (*Home, error) {
	if err := os.MkdirAll(root, 0o700); err != nil {
		return nil, fmt.Errorf("open the agent's root: %w", err)
	}
	lock, err := takeLock(filepath.Join(root, "lock"))
	if err != nil {
		return nil, err
	}
	h := &Home{root: root, lock: lock}
	if err = h.load(name); err == nil {
		h.host, err = takeHost(h.node)
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return h, nil
}

// takeHost makes this process the node's only agent on the host, whatever its root:
// a root that was copied holds an old ledger. The kernel frees such a name with the
// process; each network namespace has names of its own.
func takeHost(node nodeDoc) (net.Listener, error) {
	l, err := net.Listen("unix", "@stead-agent-"+string(node.UID))
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%w: an agent of node %s (uid %s) runs on this host already, with another root: one is a copy; "+
			"remove the copy, and start an agent with an empty --root for another node", ErrTaken, node.Name, node.UID)
	}
	if err != nil {
		return nil, fmt.Errorf("lock the node on this host: %w", err)
	}
	return l, nil
}

// Peek returns the name of the node at root, its cluster ("": none yet) and the cluster's
// range of addresses, also while an agent uses the root. It changes nothing.
func Peek(root string) (name spec.NodeName, cluster, cidr string, err error) {
	var doc nodeDoc
	if err := durable.GetJSON((&Home{root: root}).nodePath(), &doc); err != nil {
		return "", "", "", fmt.Errorf("look at the agent's root: %w", err)
	}
	return doc.Name, doc.Cluster, doc.CIDR, nil
}

// takeLock also leaves our pid in the file, for the message of one that is refused.
func takeLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the agent's root: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		by, _ := os.ReadFile(path)
		return nil, errors.Join(fmt.Errorf("%w: %s is locked by process %s; stop it, or give this agent another --root",
			ErrTaken, filepath.Dir(path), strings.TrimSpace(string(by))), f.Close())
	}
	// In place: the block that is there is ours also when the disk is full.
	if n, err := fmt.Fprintf(f, "%d\n", os.Getpid()); err == nil && f.Truncate(int64(n)) == nil {
		return f, nil
	}
	return nil, errors.Join(fmt.Errorf("lock the agent's root: %s cannot be written", path), f.Close())
}

// load reads node.json. The ledger is made before it, so that a root with a
// node.json and without a ledger has lost it.
func (h *Home) load(name spec.NodeName) error {
	err := durable.GetJSON(h.nodePath(), &h.node)
	if err == nil {
		if h.node.Name != name {
			return fmt.Errorf("%s belongs to node %s, not %s; give --node %s, or another --root", h.root, h.node.Name, name, h.node.Name)
		}
		if _, err := os.Stat(h.LedgerPath()); errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("%w: %s", ledger.ErrLost, h.LedgerPath())
		}
		return nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if at, err := os.Stat(h.LedgerPath()); err == nil && at.Size() > 0 {
		return fmt.Errorf("%s is missing beside a ledger that was used; restore it, or let this machine join as a new node with an empty root", h.nodePath())
	}
	if err := ledger.Create(h.LedgerPath()); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	uid := make([]byte, 16)
	rand.Read(uid) // it never fails
	h.node = nodeDoc{Name: name, UID: spec.UID(hex.EncodeToString(uid))}
	return h.save(h.node)
}

// Close gives root and node free.
func (h *Home) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	err := errors.Join(h.host.Close(), h.lock.Close())
	if h.newest != nil {
		err = errors.Join(err, h.newest.Close())
	}
	return err
}

// Root is the directory.
func (h *Home) Root() string { return h.root }

// Name is the node's; it never changes.
func (h *Home) Name() spec.NodeName { return h.node.Name }

// UID was made with the root.
func (h *Home) UID() spec.UID { return h.node.UID }

// Cluster is the id of the cluster that the node belongs to; "" before it joined.
func (h *Home) Cluster() string { return h.doc().Cluster }

// Domain is the cluster's DNS domain; "" before the node joined.
func (h *Home) Domain() string { return h.doc().Domain }

// CIDR is the range of the cluster's members' addresses; "" before the node joined.
func (h *Home) CIDR() string { return h.doc().CIDR }

// ServiceCIDR is the range of services' addresses; "": the server gives them none, or the node has
// not joined.
func (h *Home) ServiceCIDR() string { return h.doc().ServiceCIDR }

func (h *Home) doc() nodeDoc {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.node
}

// Belong makes the node a member of the cluster that welcomed it, permanently, and
// returns when that is on disk. ErrForeignCluster: it belongs to another one.
func (h *Home) Belong(w *proto.Welcome) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case w.GetCluster() == "":
		return errors.New("the server does not name its cluster")
	case h.node.Cluster != "" && h.node.Cluster != w.GetCluster():
		return fmt.Errorf("%w: this node is of %s, the server of %s; use the root that belongs to the server", ErrForeignCluster, h.node.Cluster, w.GetCluster())
	}
	doc := h.node
	doc.Cluster, doc.Domain, doc.CIDR, doc.ServiceCIDR = w.GetCluster(), w.GetDomain(), w.GetCidr(), w.GetServiceCidr()
	if doc == h.node {
		return nil
	}
	if err := h.save(doc); err != nil {
		return err
	}
	h.node = doc
	return nil
}

func (h *Home) nodePath() string   { return filepath.Join(h.root, "node.json") }
func (h *Home) newestPath() string { return filepath.Join(h.root, "newest.json") }

// LedgerPath is the file of the ledger (agent/ledger).
func (h *Home) LedgerPath() string { return filepath.Join(h.root, "ledger") }

// CredentialPath is the file of the node's key and certificate.
func (h *Home) CredentialPath() string { return filepath.Join(h.root, "credential.json") }

// save replaces node.json and waits for the disk.
func (h *Home) save(doc nodeDoc) error { return durable.PutJSON(h.nodePath(), doc) }

// Newest reads the highest sequence of a wanted list that was accepted; what
// cannot be read is zero, for the ledger protects without it.
func (h *Home) Newest() spec.Sequence {
	var s spec.Sequence
	if durable.GetJSON(h.newestPath(), &s) != nil {
		return spec.Sequence{}
	}
	return s
}

// newestBytes is the size of what Newest reads, with spaces at its end: so much is written in one piece, over what was there.
const newestBytes = 64

// KeepNewest replaces what Newest reads. It does not wait for the disk; and since each order of a member comes here first, it makes
// no file anew either, which the ledger would wait for on the same disk.
func (h *Home) KeepNewest(s spec.Sequence) error {
	doc, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("keep the newest sequence: %w", err)
	}
	doc = append(doc, bytes.Repeat([]byte(" "), max(0, newestBytes-len(doc)))...)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.newest != nil {
		_, err := h.newest.WriteAt(doc, 0)
		return err
	}
	if err := durable.PutUnsynced(h.newestPath(), doc, 0o600); err != nil {
		return err
	}
	h.newest, err = os.OpenFile(h.newestPath(), os.O_WRONLY, 0)
	return err
}
