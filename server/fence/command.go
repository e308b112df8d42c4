package fence

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/stead-project/stead/spec"
)

// Check tells what is wrong with a fence command and its times; an empty one is none.
func Check(command string, after, timeout time.Duration) error {
	if command == "" {
		return nil
	}
	if !filepath.IsAbs(command) {
		return fmt.Errorf("fence command %q must be an absolute path", command)
	}
	info, err := os.Stat(command)
	switch {
	case err != nil:
		return fmt.Errorf("fence command: %w", err)
	case info.IsDir() || info.Mode()&0o111 == 0:
		return fmt.Errorf("fence command %s is not an executable file", command)
	case after != 0 && after < LeastAfter:
		return fmt.Errorf("fence after %s of silence: must be at least %s", after, LeastAfter)
	case timeout < 0:
		return fmt.Errorf("fence time-out %s: must not be negative", timeout)
	}
	return nil
}

// question is what the program reads.
type question struct {
	Node    spec.NodeName `json:"node"`
	UID     spec.UID      `json:"uid"`
	Boot    spec.BootID   `json:"boot,omitempty"`
	Address string        `json:"address,omitempty"`
	Lives   []spec.LifeID `json:"lives"`
}

const (
	// endTime is how long is waited for what the killed program started elsewhere.
	endTime = 5 * time.Second
	// mostSaid bounds what is told of the program's output: the end of it.
	mostSaid = 200
)

// Command asks the program at path: its one argument is the node's name, and the question
// is JSON at its standard input and in the variables STEAD_NODE, STEAD_NODE_UID,
// STEAD_NODE_BOOT and STEAD_NODE_ADDRESS. Exit code 0 says that the machine is off, or was
// switched off since it was asked. All else, and no answer until ctx ends, is an error: the
// program and what it started is killed then.
func Command(path string) func(context.Context, *Case) error {
	return func(ctx context.Context, c *Case) error {
		text, err := json.Marshal(question{c.Node, c.UID, c.Facts.Boot, c.Facts.HostIP, c.Lives})
		if err != nil {
			return fmt.Errorf("write the question: %w", err)
		}
		var said tail
		cmd := exec.CommandContext(ctx, path, string(c.Node))
		cmd.Env = append(os.Environ(), "STEAD_NODE="+string(c.Node), "STEAD_NODE_UID="+string(c.UID),
			"STEAD_NODE_BOOT="+string(c.Facts.Boot), "STEAD_NODE_ADDRESS="+c.Facts.HostIP)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(append(text, '\n')), &said, &said
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
		cmd.WaitDelay = endTime
		err = cmd.Run()
		switch {
		case ctx.Err() != nil: // also when it said yes too late
			return errors.New("it did not answer in time")
		case err != nil && said.String() != "":
			return fmt.Errorf("%w: %s", err, said.String())
		}
		return err
	}
}

// tail keeps the end of what is written.
type tail struct{ text []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.text = append(t.text, p...)
	if over := len(t.text) - 4*mostSaid; over > 0 {
		t.text = append([]byte(nil), t.text[over:]...)
	}
	return len(p), nil
}

// String is the last line, without what no terminal should get.
func (t *tail) String() string {
	lines := strings.Split(strings.TrimSpace(strings.ToValidUTF8(string(t.text), "?")), "\n")
	line := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, lines[len(lines)-1])
	return strings.TrimSpace(strings.ToValidUTF8(line[max(0, len(line)-mostSaid):], ""))
}
