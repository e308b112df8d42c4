package volume

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/internal/durable"
	"github.com/stead-project/stead/records"
)

const (
	xfs  = "xfs"
	ext4 = "ext4"
	// xfsLeast is the smallest XFS that mkfs.xfs makes.
	xfsLeast = 300 << 20
	// programTime is how long a program may take that makes or grows a file system.
	programTime = 2 * time.Minute
)

// fsFor is the file system of an image of so many bytes: XFS, which grows while it is in use without
// further privileges; ext4 where it is too small for that.
func fsFor(size int64) string {
	if size < xfsLeast {
		return ext4
	}
	return xfs
}

// superblock is what a file system says of itself at its start.
type superblock struct {
	kind  string
	id    string // its UUID
	bytes int64  // as large as it is
	// errors: it noted errors in itself.
	errors bool
}

// superBytes is where all of it is that is read.
const superBytes = 2048

// readSuperblock reads XFS and ext4.
func readSuperblock(r io.ReaderAt) (superblock, error) {
	b := make([]byte, superBytes)
	if _, err := r.ReadAt(b, 0); err != nil {
		return superblock{}, damaged(fmt.Errorf("its start cannot be read: %w", err))
	}
	if bytes.HasPrefix(b, []byte("XFSB")) {
		big := binary.BigEndian
		return superblock{kind: xfs, id: uuid(b[32:48]), bytes: int64(big.Uint32(b[4:])) * int64(big.Uint64(b[8:]))}, nil
	}
	e, little := b[1024:], binary.LittleEndian
	if little.Uint16(e[56:]) != 0xef53 {
		return superblock{}, damaged(errors.New("there is no file system in it that is known here"))
	}
	blocks := uint64(little.Uint32(e[4:]))
	if little.Uint32(e[0x60:])&0x80 != 0 { // 64bit
		blocks |= uint64(little.Uint32(e[0x150:])) << 32
	}
	return superblock{
		kind: ext4, id: uuid(e[0x68:0x78]), bytes: int64(blocks << (10 + little.Uint32(e[24:])&7)), errors: little.Uint16(e[58:])&2 != 0,
	}, nil
}

func uuid(b []byte) string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:16])
}

// fsID is the UUID of the file system of a volume: the volume's own id.
func fsID(volume records.VolumeID) string {
	b, err := hex.DecodeString(string(volume))
	if err != nil || len(b) != 16 {
		return "none"
	}
	return uuid(b)
}

// fault is why it must not be mounted; nil: it may be.
func (s superblock) fault() error {
	if s.errors {
		return damaged(errors.New("it noted errors in itself"))
	}
	return nil
}

// damaged says of a file system that it needs hands.
func damaged(why error) error {
	return fmt.Errorf("%w: %w; nothing was repaired; copy the image, then repair the file system in it (xfs_repair, e2fsck) while no life has it, or restore a backup",
		runtime.ErrDamaged, why)
}

// mount mounts it from a device; the kernel replays its journal, and nothing else is repaired.
func (s superblock) mount(device, target string) error {
	options := ""
	if s.kind == ext4 {
		options = "errors=remount-ro,noinit_itable" // the latter would free space of the image
	}
	err := unix.Mount(device, target, s.kind, unix.MS_NOSUID|unix.MS_NODEV, options)
	switch {
	case errors.Is(err, syscall.ENODEV):
		return fmt.Errorf("%w: this kernel has no %s", runtime.ErrNotFound, s.kind)
	case errors.Is(err, unix.EUCLEAN), errors.Is(err, unix.EBADMSG), errors.Is(err, unix.EIO), errors.Is(err, unix.EINVAL):
		return damaged(err)
	}
	return err
}

// makeFS makes the file system of a volume in a file of so many bytes.
func (v *Volumes) makeFS(ctx context.Context, path string, volume records.VolumeID, size int64) error {
	id := fsID(volume)
	if id == "none" {
		return fmt.Errorf("the id %s of the volume is not 32 hexadecimal digits", volume)
	}
	if fsFor(size) == xfs {
		proto := filepath.Join(v.images, ".proto")
		if err := durable.PutUnsynced(proto, []byte("/dev/null\n0 0\nd--755 0 0\n"+dataDir+" d--755 0 0\n$\n$\n"), 0o600); err != nil {
			return err
		}
		return run(ctx, "mkfs.xfs", "-q", "-f", "-K", "-m", "uuid="+id, "-p", proto, path)
	}
	top := filepath.Join(v.images, ".template")
	data := filepath.Join(top, dataDir)
	if err := os.MkdirAll(data, 0o755); err != nil {
		return err
	}
	if err := errors.Join(os.Chmod(top, 0o755), os.Chmod(data, 0o755)); err != nil { // whatever the umask
		return err
	}
	return run(ctx, "mkfs.ext4", "-q", "-F", "-m", "0", "-U", id, "-d", top,
		"-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0,root_owner=0:0", path)
}

// programs of Debian's packages xfsprogs and e2fsprogs.
var imagePrograms = []string{"mkfs.xfs", "xfs_growfs", "mkfs.ext4", "resize2fs"}

// CheckSized says what this host lacks for sized classes, one sentence each.
func CheckSized() (lacks []string) {
	for _, p := range imagePrograms {
		if _, err := findProgram(p); err != nil {
			lacks = append(lacks, err.Error())
		}
	}
	known, err := os.ReadFile("/proc/filesystems")
	for _, kind := range []string{xfs, ext4} {
		if err == nil && !strings.Contains(string(known), "\t"+kind+"\n") && !hasModule(kind) {
			lacks = append(lacks, "this kernel has no "+kind+", which volumes of a sized class need")
		}
	}
	if _, err := os.Stat(loopControl); err != nil && !hasModule("loop") {
		lacks = append(lacks, "this kernel has no loop devices, which volumes of a sized class need: "+err.Error())
	}
	return lacks
}

// hasModule reports whether the kernel can load a module when it is needed.
func hasModule(name string) bool {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return false
	}
	list, err := os.ReadFile(filepath.Join("/lib/modules", unix.ByteSliceToString(u.Release[:]), "modules.dep"))
	return err == nil && strings.Contains(string(list), "/"+name+".ko")
}

// findProgram finds a program also where a short PATH does not lead.
func findProgram(name string) (string, error) {
	path, err := exec.LookPath(name)
	for _, dir := range []string{"/usr/sbin", "/sbin"} {
		if err != nil {
			path, err = exec.LookPath(filepath.Join(dir, name))
		}
	}
	if err != nil {
		pkg := "e2fsprogs"
		if strings.Contains(name, xfs) {
			pkg = "xfsprogs"
		}
		return "", fmt.Errorf("%w: %s is not installed, which volumes of a sized class need; install %s", runtime.ErrNotFound, name, pkg)
	}
	return path, nil
}

// run runs a program of the host, and says what it said if it fails.
func run(ctx context.Context, name string, args ...string) error {
	path, err := findProgram(name)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, programTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = []string{"LC_ALL=C", "PATH=/usr/sbin:/usr/bin:/sbin:/bin"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, strconv.Quote(strings.TrimSpace(string(out[:min(len(out), 500)]))))
	}
	return nil
}
