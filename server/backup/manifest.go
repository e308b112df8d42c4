package backup

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/stead-project/stead/spec"
)

// The kinds of errors of a file; test with errors.Is.
var (
	// ErrForeign: the file is no backup of this form.
	ErrForeign = errors.New("it is not a backup made by 'stead backup create' or a server")
	// ErrDamaged: the file is cut short, or its content is not what was written.
	ErrDamaged = errors.New("it is cut short or damaged")
	// ErrNewer: the file is of a later form than this program reads.
	ErrNewer = errors.New("it was made by a later version; use that version of stead")
	// ErrKey: none of the keys opens the file.
	ErrKey = errors.New("this key does not open it")
	// ErrSealed: the file is encrypted, and no key was given.
	ErrSealed = errors.New("it is encrypted; give the private key with --key FILE")
)

const (
	magic  = "stead-backup\n"
	format = 1
	// maxManifest bounds the manifest, in bytes.
	maxManifest = 64 << 10
)

// Manifest says what is in a backup. It can be read by whoever can read the file, also of one that is encrypted.
type Manifest struct {
	Format  int       `json:"format"`
	Cluster string    `json:"cluster"`
	Epoch   int64     `json:"epoch"`
	Rev     int64     `json:"rev"`
	Made    time.Time `json:"made"`
	Server  string    `json:"server"`
	Version string    `json:"version"` // of Stead
	// Held is why the store was held; "": it was not.
	Held string `json:"held,omitempty"`
	// Kinds is how many records of each kind there are; Unreadable of them a server of Version cannot read.
	Kinds      map[string]int `json:"kinds"`
	Unreadable int            `json:"unreadable,omitempty"`
	// Bytes and SHA256 (hex) are of the snapshot before it was encrypted.
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
	// Extra is how many bytes are before the snapshot in what is encrypted.
	Extra int64     `json:"extra,omitempty"`
	For   []Wrapped `json:"for,omitempty"` // none: it is not encrypted
}

// Wrapped is the file's key, encrypted for one recipient.
type Wrapped struct {
	Recipient string `json:"recipient"` // its public key
	Key       []byte `json:"key"`
}

// At is the place of the backup in the order of the store's states.
func (m *Manifest) At() spec.Sequence { return spec.Sequence{Epoch: m.Epoch, Rev: m.Rev} }

// Encrypted reports whether a private key is needed to open it.
func (m *Manifest) Encrypted() bool { return len(m.For) > 0 }

// Keys is the number of records.
func (m *Manifest) Keys() (n int) {
	for _, of := range m.Kinds {
		n += of
	}
	return n
}

// FileName is that of a backup in a directory; two of one moment and state have the same.
func (m *Manifest) FileName() string {
	return fmt.Sprintf("stead-%.8s-%s-e%d-r%d%s", m.Cluster, m.Made.UTC().Format("20060102T150405Z"), m.Epoch, m.Rev, suffix)
}

// suffix ends the names of backups.
const suffix = ".backup"

// header is how a file begins.
func (m *Manifest) header() ([]byte, error) {
	line, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	if len(line) >= maxManifest {
		return nil, errors.New("its manifest is too large: name fewer recipients")
	}
	return append(append([]byte(magic), line...), '\n'), nil
}

// readHeader reads how a file begins.
func readHeader(r io.Reader) (m Manifest, header []byte, err error) {
	in := bufio.NewReaderSize(io.LimitReader(r, int64(len(magic)+maxManifest)), len(magic)+maxManifest)
	start := make([]byte, len(magic))
	if _, err := io.ReadFull(in, start); err != nil || string(start) != magic {
		return m, nil, ErrForeign
	}
	line, err := in.ReadBytes('\n')
	if err != nil {
		return m, nil, fmt.Errorf("%w: it ends in its manifest", ErrDamaged)
	}
	if err := json.Unmarshal(line, &m); err != nil {
		return m, nil, fmt.Errorf("%w: its manifest cannot be read", ErrDamaged)
	}
	switch {
	case m.Format > format:
		return m, nil, ErrNewer
	case m.Format < 1 || m.Cluster == "" || m.Epoch < 1 || m.Bytes < 0 || m.Extra < 0:
		return m, nil, fmt.Errorf("%w: its manifest lacks what each has", ErrDamaged)
	}
	return m, append(start, line...), nil
}
