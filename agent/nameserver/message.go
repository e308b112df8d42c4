package nameserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/dnsd"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// The requests that a connection may begin with.
const (
	askSockets = "sockets"
	askServe   = "serve"
	askQuit    = "quit"
	askFeed    = "feed"
)

// request is the first message of a connection.
type request struct {
	Ask string `json:"ask"`
	// Addresses are those of the sockets that come with it, two each: of UDP and of TCP.
	Addresses []netip.AddrPort `json:"addresses,omitempty"`
	// Retire are paths of processes that are to end once this one answers.
	Retire []string `json:"retire,omitempty"`
}

// reply answers a request, but for feed.
type reply struct {
	Error     string           `json:"error,omitempty"`
	Addresses []netip.AddrPort `json:"addresses,omitempty"` // of the sockets that come with it
}

// order is what an agent says on a feed; one of the fields is set.
type order struct {
	Zone     *change   `json:"zone,omitempty"`
	Followed *followed `json:"followed,omitempty"`
	Count    bool      `json:"count,omitempty"` // report the counts
}

// change leads from what the process has of all sets to the next.
type change struct {
	Number   int           `json:"number"` // the report that it is done says the same
	Sequence spec.Sequence `json:"sequence"`
	Domain   string        `json:"domain"`
	Gateway  netip.Addr    `json:"gateway"`
	Members  netip.Prefix  `json:"members"`
	Services netip.Prefix  `json:"services"`
	// Whole: sets that are not named do not exist. Else they are as they were.
	Whole bool               `json:"whole,omitempty"`
	Sets  []records.Snapshot `json:"sets,omitempty"` // with what DNS reads of them alone
	// Peers is what differs of sets that differ in nothing else.
	Peers []peersChange `json:"peers,omitempty"`
	Gone  []spec.SetRef `json:"gone,omitempty"`
}

// peersChange leads from the peers of a set to the next, both ascending.
type peersChange struct {
	Set   spec.SetRef    `json:"set"`
	Peers []records.Peer `json:"peers,omitempty"` // that are new, or not as they were
	Left  []int          `json:"left,omitempty"`  // ordinals
}

// followed says what came of an interest.
type followed struct {
	Number int    `json:"number"`
	Error  string `json:"error,omitempty"`
}

// report is what a process says on a feed; one of the fields is set.
type report struct {
	State  *state       `json:"state,omitempty"` // the first report, and no other
	Done   int          `json:"done,omitempty"`  // this change is what is answered from
	Follow *follow      `json:"follow,omitempty"`
	Asked  *spec.SetRef `json:"asked,omitempty"` // see dnsd.Config
	Counts *dnsd.Counts `json:"counts,omitempty"`
}

// state is what a process is doing.
type state struct {
	Serving bool `json:"serving"` // it answers
	Fed     bool `json:"fed"`     // it has records
}

// follow asks for what must be known to answer a question.
type follow struct {
	Number  int         `json:"number"`
	Set     spec.SetRef `json:"set,omitzero"`
	Address netip.Addr  `json:"address,omitzero"`
}

// mostRequest is the size of a first message or its reply, in bytes, and mostSockets how many may go with it: as many
// as the kernel passes on at once.
const (
	mostRequest = 64 << 10
	mostSockets = 253
)

// sendFirst writes the first message of a connection, or its reply, with sockets.
func sendFirst(c *net.UnixConn, message any, list []dnsd.Sockets) error {
	text, err := json.Marshal(message)
	if err != nil {
		return err
	}
	var fds []int
	for _, k := range list {
		fds = append(fds, k.UDP, k.TCP)
	}
	if len(text) > mostRequest || len(fds) > mostSockets {
		return fmt.Errorf("a message of %d bytes and %d sockets is too large", len(text), len(fds))
	}
	var rights []byte
	if len(fds) > 0 {
		rights = unix.UnixRights(fds...)
	}
	_, _, err = c.WriteMsgUnix(text, rights, nil)
	return err
}

// errNothing says that a connection ended before anything came.
var errNothing = errors.New("the connection ended without a message")

// isRefused reports whether no process is at a path.
func isRefused(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, os.ErrNotExist)
}

// readFirst reads what sendFirst sent. addresses says, once message is read, those of the sockets. The caller closes these.
func readFirst(c *net.UnixConn, message any, addresses func() []netip.AddrPort) (list []dnsd.Sockets, err error) {
	text, rights := make([]byte, mostRequest), make([]byte, unix.CmsgSpace(4*mostSockets))
	n, extra, flags, _, err := c.ReadMsgUnix(text, rights)
	if n == 0 && (err == nil || errors.Is(err, io.EOF)) {
		err = errNothing
	}
	if err != nil {
		return nil, err
	}
	fds, err := descriptors(rights[:extra])
	defer func() {
		if err != nil {
			for _, fd := range fds {
				unix.Close(fd)
			}
		}
	}()
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text[:n], message); err != nil {
		return nil, err
	}
	at := addresses()
	if flags&unix.MSG_CTRUNC != 0 || len(fds) != 2*len(at) {
		return nil, fmt.Errorf("%d sockets came for %d addresses", len(fds), len(at))
	}
	for i, a := range at {
		list = append(list, dnsd.Sockets{Addr: a, UDP: fds[2*i], TCP: fds[2*i+1]})
	}
	return list, nil
}

// descriptors are those that came with a message.
func descriptors(rights []byte) (fds []int, err error) {
	messages, err := unix.ParseSocketControlMessage(rights)
	if err != nil {
		return nil, err
	}
	for _, m := range messages {
		more, err := unix.ParseUnixRights(&m)
		fds = append(fds, more...)
		if err != nil {
			return fds, err
		}
	}
	for _, fd := range fds {
		unix.CloseOnExec(fd)
	}
	return fds, nil
}

func addressesOf(list []dnsd.Sockets) (all []netip.AddrPort) {
	for _, k := range list {
		all = append(all, k.Addr)
	}
	return all
}

func closeAll(list []dnsd.Sockets) {
	for _, k := range list {
		k.Close()
	}
}

// askTime is how long a process may take to answer a request.
const askTime = 5 * time.Second

// ask sends a request to the process at path and returns the sockets that came with the reply; the caller closes them.
func ask(path string, r request, give []dnsd.Sockets) ([]dnsd.Sockets, error) {
	c, err := dial(path)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if err := sendFirst(c, r, give); err != nil {
		return nil, err
	}
	var answer reply
	list, err := readFirst(c, &answer, func() []netip.AddrPort { return answer.Addresses })
	if err == nil && answer.Error != "" {
		err = errors.New(answer.Error)
	}
	return list, err
}

// dial connects to a process; the connection ends after askTime unless the caller gives it more.
func dial(path string) (*net.UnixConn, error) {
	c, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	return c, c.SetDeadline(time.Now().Add(askTime))
}
