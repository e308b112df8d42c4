package sim

import (
	"fmt"
	"io"

	"github.com/stead-project/stead/agent/ledger"
)

// disk holds a ledger. What was not synced may be lost in a crash of the machine,
// whole or in part; a crash of the agent alone loses nothing that was written.
type disk struct {
	node      *node
	now, safe []byte
	closed    bool
	// failIn counts writes down to one that fails; 0: none does.
	failIn int
}

var _ ledger.Disk = (*disk)(nil)

// Name implements ledger.Disk.
func (d *disk) Name() string { return "ledger" }

// Read implements ledger.Disk.
func (d *disk) Read() ([]byte, error) { return append([]byte(nil), d.now...), nil }

// WriteAt implements ledger.Disk.
func (d *disk) WriteAt(p []byte, at int64) (int, error) {
	if d.failIn > 0 {
		d.failIn--
		if d.failIn == 0 {
			d.now = append(d.now[:at:at], p[:len(p)/2]...)
			return len(p) / 2, fmt.Errorf("write: %w", io.ErrShortWrite)
		}
	}
	d.now = append(d.now[:at:at], p...)
	return len(p), nil
}

// Truncate implements ledger.Disk.
func (d *disk) Truncate(size int64) error { d.now = d.now[:size:size]; return nil }

// Sync implements ledger.Disk.
func (d *disk) Sync() error { d.safe = d.now; return nil }

// Replace implements ledger.Disk.
func (d *disk) Replace(content []byte) (bool, error) {
	d.now, d.safe = content, content
	return true, nil
}

// Close implements ledger.Disk.
func (d *disk) Close() error { d.closed = true; return nil }

// powerCut keeps of what was not synced the first n bytes.
func (d *disk) powerCut(n int) {
	common := 0
	for common < len(d.safe) && common < len(d.now) && d.safe[common] == d.now[common] {
		common++
	}
	if common < len(d.safe) {
		d.now = d.safe
		return
	}
	d.now = d.now[:min(len(d.now), common+n)]
	d.safe = d.now
}
