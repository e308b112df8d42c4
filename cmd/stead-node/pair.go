package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/stead-project/stead/agent/logs"
)

// A logger is two processes that watch each other, for without a reader of its
// output a container gets SIGPIPE. The writer copies; the keeper, which the shim
// started, only holds the streams open. Whichever is killed, the other starts it
// again; killed both at once, they are gone.
//
// Both have the streams as fd 3 and 4, and one end of a socket between them. A byte in
// it says that both streams have ended, and is the writer's exit code; the socket's end
// without one says that the other half died.
type half struct {
	cfg     logs.Config
	arg     string // cfg, as it came
	first   bool   // no writer was there before
	streams [2]*os.File
	stderr  io.Writer
}

// respawn is the time between two starts of a half that dies again and again.
const respawn = time.Second

// keep is the keeper, beside a writer that is there (peer), or is to be started.
func (h *half) keep(peer *os.File) int {
	for ; ; h.first = false {
		started := time.Now()
		if peer == nil {
			var err error
			peer, err = h.start("writer")
			if err != nil {
				// Better one process than none.
				fmt.Fprintln(h.stderr, "stead-node logger: start the writer:", err)
				return h.write(nil)
			}
		}
		code := []byte{0}
		if n, _ := peer.Read(code); n == 1 {
			return int(code[0])
		}
		peer.Close()
		peer = nil
		time.Sleep(respawn - time.Since(started))
	}
}

// write is the writer; without a peer it has one started.
func (h *half) write(peer *os.File) int {
	w := logs.NewWriter(h.cfg)
	defer w.Close()
	if !h.first {
		w.Note("the logger was killed and started again; output it had read and not written is lost")
	}
	keeper := &keeperProcess{h: h, peer: peer}
	go keeper.run()
	code := h.copy(w)
	w.Close() // before the keeper ends, whose end is the logger's
	keeper.end(code)
	return code
}

// copy copies until both streams have ended.
func (h *half) copy(w *logs.Writer) int {
	var failed [len(h.streams)]error
	var group sync.WaitGroup
	for i, in := range h.streams {
		group.Go(func() { failed[i] = w.Copy(in.Name(), in) })
	}
	group.Wait()
	for _, err := range failed {
		if err != nil {
			fmt.Fprintln(h.stderr, "stead-node logger:", err)
			return 1
		}
	}
	return 0
}

// keeperProcess is the keeper of a writer, started again whenever it is gone.
type keeperProcess struct {
	h     *half
	mu    sync.Mutex
	peer  *os.File // nil: there is none
	ended bool
}

// run starts a keeper whenever there is none. It lives as long as the process.
func (k *keeperProcess) run() {
	var started time.Time
	for {
		time.Sleep(respawn - time.Since(started))
		started = time.Now()
		k.mu.Lock()
		if k.ended {
			k.mu.Unlock()
			return
		}
		if k.peer == nil {
			k.peer, _ = k.h.start("keeper") // tried again
		}
		peer := k.peer
		k.mu.Unlock()
		if peer == nil {
			continue
		}
		_, _ = peer.Read(make([]byte, 1)) // nothing but its end
		k.mu.Lock()
		if !k.ended {
			k.peer = nil
			peer.Close()
		}
		k.mu.Unlock()
	}
}

// end lets the keeper end with this code: both streams have ended.
func (k *keeperProcess) end(code int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ended = true
	if k.peer != nil {
		_, _ = k.peer.Write([]byte{byte(code)}) // a keeper that just died needs no code
	}
}

// start starts the other half, and returns our end of the socket between us.
func (h *half) start(role string) (*os.File, error) {
	ends, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	ours, theirs := os.NewFile(uintptr(ends[0]), "peer"), os.NewFile(uintptr(ends[1]), "peer")
	defer theirs.Close()
	if role == "writer" && !h.first {
		role = "again"
	}
	// By its own name among the arguments, as the agent knows us, and yet by the very
	// file we run, which may have been replaced or removed.
	cmd := exec.Command("/proc/self/exe", role, h.arg)
	cmd.Args[0] = os.Args[0]
	cmd.Stderr = os.Stderr
	cmd.ExtraFiles = []*os.File{h.streams[0], h.streams[1], theirs}
	if err := cmd.Start(); err != nil {
		ours.Close()
		return nil, err
	}
	go func() { _ = cmd.Wait() }() // how it ended does not matter
	return ours, nil
}
