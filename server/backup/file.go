package backup

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/stead-project/stead/internal/durable"
)

// Secrets are what is needed beside the snapshot to use it on new servers. They are in encrypted backups only.
type Secrets struct {
	// Key is the content of a server's secret.key: it opens the Secrets in the store, and the authority's key.
	Key []byte `json:"secret.key"`
}

// write writes a backup of which m says all but how it is encrypted.
func write(w io.Writer, m Manifest, snapshot io.Reader, secrets Secrets, to []PublicKey) (Manifest, error) {
	m.Format = format
	var key, extra []byte
	var err error
	if len(to) > 0 {
		if key, m.For, err = wrap(to); err != nil {
			return m, err
		}
		if extra, err = json.Marshal(secrets); err != nil {
			return m, err
		}
		m.Extra = int64(len(extra))
	}
	header, err := m.header()
	if err != nil {
		return m, err
	}
	sum := sha256.New()
	out := io.MultiWriter(w, sum)
	if _, err := out.Write(header); err != nil {
		return m, err
	}
	if key != nil {
		err = encrypt(out, io.MultiReader(bytes.NewReader(extra), snapshot), key, header)
	} else {
		_, err = io.Copy(out, snapshot)
	}
	if err == nil {
		_, err = w.Write(sum.Sum(nil))
	}
	return m, err
}

// File is a backup that was opened.
type File struct {
	Manifest
	Path   string
	Size   int64
	file   *os.File
	header []byte
}

// Open reads the manifest of a backup, and compares its size. Errors: ErrForeign, ErrDamaged, ErrNewer, and those of
// the disk. Close ends it.
func Open(path string) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	b := &File{Path: path, file: f}
	err = b.open()
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("open backup %s: %w", path, err)
	}
	return b, nil
}

func (f *File) open() (err error) {
	if f.Manifest, f.header, err = readHeader(f.file); err != nil {
		return err
	}
	info, err := f.file.Stat()
	if err != nil {
		return err
	}
	f.Size = info.Size()
	if want := int64(len(f.header)) + f.content() + sha256.Size; f.Size != want {
		return fmt.Errorf("%w: it has %d of %d bytes", ErrDamaged, f.Size, want)
	}
	return nil
}

// content is how long the part between header and checksum is.
func (f *File) content() int64 {
	if f.Encrypted() {
		return sealedBytes(f.Extra + f.Bytes)
	}
	return f.Bytes
}

// Close closes the file.
func (f *File) Close() error { return f.file.Close() }

// Check reads the whole file and compares its SHA-256. It needs no key. Errors: ErrDamaged, and those of the disk.
func (f *File) Check() error {
	sum := sha256.New()
	if _, err := io.Copy(sum, io.NewSectionReader(f.file, 0, f.Size-sha256.Size)); err != nil {
		return fmt.Errorf("check backup %s: %w", f.Path, err)
	}
	want := make([]byte, sha256.Size)
	if _, err := f.file.ReadAt(want, f.Size-sha256.Size); err != nil {
		return fmt.Errorf("check backup %s: %w", f.Path, err)
	}
	if !bytes.Equal(sum.Sum(nil), want) {
		return fmt.Errorf("check backup %s: %w: its checksum differs", f.Path, ErrDamaged)
	}
	return nil
}

// Unseal writes the snapshot to w, and returns what else an encrypted backup has; key may be nil for another. What was
// written counts only when there is no error: ErrSealed, ErrKey, ErrDamaged, and those of disks.
func (f *File) Unseal(key *PrivateKey, w io.Writer) (*Secrets, error) {
	out, err := f.unseal(key, w)
	if err != nil {
		return nil, fmt.Errorf("open backup %s: %w", f.Path, err)
	}
	return out, nil
}

func (f *File) unseal(key *PrivateKey, w io.Writer) (secrets *Secrets, err error) {
	sum, extra := sha256.New(), &bytes.Buffer{}
	out := &split{first: extra, left: f.Extra, then: io.MultiWriter(w, sum)}
	body := io.NewSectionReader(f.file, int64(len(f.header)), f.content())
	switch {
	case !f.Encrypted():
		_, err = io.Copy(out, body)
	case key == nil:
		err = ErrSealed
	default:
		var fileKey []byte
		if fileKey, err = key.unwrap(f.For); err == nil {
			err = decrypt(out, body, fileKey, f.header)
		}
	}
	if err != nil {
		return nil, err
	}
	if hex.EncodeToString(sum.Sum(nil)) != f.SHA256 {
		return nil, fmt.Errorf("%w: the checksum of its snapshot differs", ErrDamaged)
	}
	if !f.Encrypted() {
		return nil, nil
	}
	secrets = &Secrets{}
	if err := json.Unmarshal(extra.Bytes(), secrets); err != nil {
		return nil, fmt.Errorf("%w: what is beside its snapshot cannot be read", ErrDamaged)
	}
	return secrets, nil
}

// split writes the first left bytes to first, and what follows to then.
type split struct {
	first, then io.Writer
	left        int64
}

func (s *split) Write(b []byte) (int, error) {
	n := int(min(s.left, int64(len(b))))
	s.left -= int64(n)
	if _, err := s.first.Write(b[:n]); err != nil {
		return 0, err
	}
	if _, err := s.then.Write(b[n:]); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Save has a backup written into a draft, reads it back, and gives it its name when it is whole and on disk: to, or in
// the directory to its FileName. A file that is there already is not replaced (fs.ErrExist). The draft (its name) is in the
// same directory; one that a crash left is written over.
func Save(to, draft string, make func(io.Writer) error) (f *File, err error) {
	dir := filepath.Dir(to)
	if info, err := os.Stat(to); err == nil && info.IsDir() {
		dir = to
	} else if err == nil {
		return nil, fmt.Errorf("%w: %s", os.ErrExist, to)
	}
	part := filepath.Join(dir, draft)
	out, err := os.OpenFile(part, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, ignoreAbsent(os.Remove(part)))
		}
	}()
	if err := errors.Join(make(out), out.Sync(), out.Close()); err != nil {
		return nil, err
	}
	if f, err = Open(part); err != nil {
		return nil, err
	}
	defer f.Close()
	if err := f.Check(); err != nil {
		return nil, err
	}
	f.Path = to
	if dir == to {
		f.Path = filepath.Join(dir, f.FileName())
	}
	if _, err := os.Lstat(f.Path); !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s", errors.Join(os.ErrExist, err), f.Path)
	}
	if err := os.Rename(part, f.Path); err != nil {
		return nil, err
	}
	return f, durable.SyncDir(dir)
}

func ignoreAbsent(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}
