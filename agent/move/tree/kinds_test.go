package tree

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/agent/move/treetest"
)

// Each kind of thing that a member can leave is at the other end as it was, and found unchanged by the next round.
func TestEachKindOfEntryIsCopied(t *testing.T) {
	file := func(path string) error { return os.WriteFile(path, []byte("content of "+path), 0o640) }
	attr := func(path, name string, value []byte) error { return unix.Setxattr(path, name, value, 0) }
	at := func(path string, sec, nsec int64) error {
		return unix.UtimesNanoAt(unix.AT_FDCWD, path, []unix.Timespec{{Nsec: unix.UTIME_OMIT}, {Sec: sec, Nsec: nsec}}, unix.AT_SYMLINK_NOFOLLOW)
	}
	many := func(dir string) (err error) {
		for i := range 600 {
			err = errors.Join(err, file(filepath.Join(dir, "f"+strconv.Itoa(i))))
		}
		return err
	}
	for _, c := range []struct {
		name string
		root bool // only root can make it
		make func(dir string) error
	}{
		{name: "nothing", make: func(string) error { return nil }},
		{name: "an empty file", make: func(d string) error { return os.WriteFile(d+"/f", nil, 0o600) }},
		{name: "many files", make: many},
		{name: "names that are no text", make: func(d string) error {
			return errors.Join(file(d+"/a\nb"), file(d+"/\xff\xfe"), file(d+"/ "), file(d+"/-rf"), file(d+"/..."), file(d+"/\x01\x7f"))
		}},
		{name: "names as long as can be", make: func(d string) error {
			long := d + "/" + strings.Repeat("x", unix.NAME_MAX)
			return errors.Join(os.Mkdir(long, 0o700), file(long+"/"+strings.Repeat("\xc3", unix.NAME_MAX)))
		}},
		{name: "one file in several directories", make: func(d string) error {
			return errors.Join(os.MkdirAll(d+"/a/b", 0o700), os.MkdirAll(d+"/c/d", 0o700), file(d+"/c/d/z"), os.Link(d+"/c/d/z", d+"/a/b/first"),
				os.Link(d+"/c/d/z", d+"/a/second"), os.Link(d+"/c/d/z", d+"/top"), file(d+"/a/alone"))
		}},
		{name: "links, pipes and sockets of several names", make: func(d string) error {
			return errors.Join(os.Symlink("nowhere", d+"/l"), os.Link(d+"/l", d+"/l2"), unix.Mkfifo(d+"/p", 0o620), os.Link(d+"/p", d+"/p2"),
				treetest.Socket(d+"/s"), os.Link(d+"/s", d+"/s2"))
		}},
		{name: "links anywhere", make: func(d string) error {
			return errors.Join(os.Symlink("/etc/passwd", d+"/abs"), os.Symlink("../../..", d+"/up"), os.Symlink(".", d+"/self"),
				os.Symlink("loop", d+"/loop"), os.Symlink(strings.Repeat("t", 4000), d+"/long"), at(d+"/abs", 5, 7))
		}},
		{name: "a sparse file", make: func(d string) error {
			f, err := os.Create(d + "/f")
			if err != nil {
				return err
			}
			_, err = f.WriteAt([]byte("middle"), 5<<20+123)
			return errors.Join(err, f.Truncate(9<<20+1), f.Close())
		}},
		{name: "setuid, setgid, sticky", make: func(d string) error {
			return errors.Join(file(d+"/u"), os.Mkdir(d+"/g", 0o700), file(d+"/g/in"), unix.Chmod(d+"/u", 0o6755), unix.Chmod(d+"/g", 0o3070))
		}},
		{name: "times of other centuries", make: func(d string) error {
			return errors.Join(file(d+"/old"), file(d+"/new"), file(d+"/ns"), os.Mkdir(d+"/dir", 0o700), file(d+"/dir/in"),
				at(d+"/old", -2_000_000_000, 999_999_999), at(d+"/new", 10_000_000_000, 1), at(d+"/ns", 1, 123_456_789), at(d+"/dir", 2, 3), at(d, 4, 5))
		}},
		{name: "attributes and ACLs", make: func(d string) error {
			return errors.Join(file(d+"/f"), os.Mkdir(d+"/dir", 0o750), attr(d+"/f", "user.a", []byte{0, 1}), attr(d+"/f", "user.empty", nil),
				attr(d+"/f", "user.long", bytes.Repeat([]byte("v"), 2000)), attr(d+"/dir", "user.b", []byte("x")),
				attr(d+"/f", "system.posix_acl_access", treetest.ACL(7)), attr(d+"/dir", "system.posix_acl_access", treetest.ACL(8)),
				attr(d+"/dir", "system.posix_acl_default", treetest.ACL(9)), file(d+"/dir/inherits"), os.Mkdir(d+"/dir/too", 0o700))
		}},
		{name: "a directory that takes no file", make: func(d string) error {
			return errors.Join(os.MkdirAll(d+"/ro/in", 0o700), file(d+"/ro/f"), os.Chmod(d+"/ro/in", 0), os.Chmod(d+"/ro", 0o500))
		}},
		{name: "owners", root: true, make: func(d string) error {
			return errors.Join(file(d+"/f"), os.Symlink("x", d+"/l"), os.Mkdir(d+"/d", 0o700), unix.Mkfifo(d+"/p", 0o600), os.Lchown(d+"/f", 1<<31+5, 7),
				os.Lchown(d+"/l", 8, 9), os.Lchown(d+"/d", 10, 11), os.Lchown(d+"/p", 12, 13), unix.Chmod(d+"/f", 0o6711), os.Lchown(d, 14, 15))
		}},
		{name: "devices", root: true, make: func(d string) error {
			return errors.Join(unix.Mknod(d+"/c", unix.S_IFCHR|0o640, int(unix.Mkdev(1, 3))), unix.Mknod(d+"/b", unix.S_IFBLK|0o600, int(unix.Mkdev(300, 1<<18+5))),
				unix.Mknod(d+"/whiteout", unix.S_IFCHR, 0))
		}},
		{name: "capabilities of a program that root does not own", root: true, make: func(d string) error {
			return errors.Join(file(d+"/f"), os.Lchown(d+"/f", 5, 6), unix.Chmod(d+"/f", 0o755), attr(d+"/f", "security.capability", treetest.Capability()),
				attr(d+"/f", "trusted.overlay.x", []byte("y")))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.root && !treetest.Root() {
				t.Skip("only root can make it")
			}
			p := newPair(t)
			if err := c.make(p.from); err != nil {
				t.Fatal(err)
			}
			p.round()
			p.equal("the first round")
			before := p.changes()
			p.round()
			if after := p.changes(); after != before {
				t.Errorf("nothing changed, and the next round wrote:\n%s\n%s", before, after)
			}
			must(t, os.WriteFile(p.at("one more"), nil, 0o600))
			p.round()
			p.equal("a further round")
			must(t, unix.Chmod(p.from, 0o700))
			entries, err := os.ReadDir(p.from)
			must(t, err)
			for _, e := range entries {
				must(t, os.RemoveAll(p.at(e.Name())))
			}
			p.round()
			p.equal("all deleted")
		})
	}
}

// changes are the times at which anything of what was copied changed last; those of directories say when they were entered.
func (p *pair) changes() (text string) {
	p.t.Helper()
	err := filepath.WalkDir(p.to, func(path string, _ os.DirEntry, err error) error {
		var st unix.Stat_t
		if err == nil {
			err = unix.Lstat(path, &st)
		}
		if st.Mode&unix.S_IFMT != unix.S_IFDIR {
			text += path + " " + strconv.FormatInt(st.Ctim.Nano(), 10) + "\n"
		}
		return err
	})
	must(p.t, err)
	return text
}

// A change of owner clears setuid and capabilities in the kernel; they are given again.
func TestAChangeOfOwnerTakesNothingElse(t *testing.T) {
	if !treetest.Root() {
		t.Skip("only root can change owners")
	}
	p := newPair(t)
	give := func(owner int) {
		must(t, os.Lchown(p.at("f"), owner, owner), unix.Chmod(p.at("f"), 0o6755),
			unix.Setxattr(p.at("f"), "security.capability", treetest.Capability(), 0))
	}
	must(t, os.WriteFile(p.at("f"), []byte("x"), 0o600))
	give(1)
	p.round()
	p.equal("copied")
	give(2)
	p.sum(p.from, p.src, true) // its content is known, and not written again
	p.round()
	p.equal("of another owner")
}

// Names of one file that become files of their own are such, and what is written to one is not written to the other.
func TestNamesOfOneFileBecomeFilesOfTheirOwn(t *testing.T) {
	p := newPair(t)
	must(t, os.WriteFile(p.at("a"), []byte("one"), 0o600), os.Link(p.at("a"), p.at("b")), os.Link(p.at("a"), p.at("c")))
	p.round()
	p.equal("one file")
	must(t, os.Remove(p.at("b")), os.WriteFile(p.at("b"), []byte("two"), 0o600), os.Remove(p.at("c")), os.Link(p.at("b"), p.at("c")))
	p.round()
	p.equal("two files")
	must(t, os.Remove(p.at("c")), os.Link(p.at("a"), p.at("c")))
	p.round()
	p.equal("one has another name")
}

// What becomes a thing of another kind, or another file of the same name, is that at the other end, whatever was in it.
func TestOneKindBecomesAnother(t *testing.T) {
	kinds := map[string]func(path string) error{
		"file":      func(path string) error { return os.WriteFile(path, []byte("x"), 0o600) },
		"directory": func(path string) error { return os.MkdirAll(path+"/a/b/c", 0o700) },
		"link":      func(path string) error { return os.Symlink("a", path) },
		"pipe":      func(path string) error { return unix.Mkfifo(path, 0o600) },
		"two names": func(path string) error {
			return errors.Join(os.WriteFile(path, []byte("y"), 0o600), os.Link(path, filepath.Dir(path)+"/other"))
		},
		"the other name": func(path string) error {
			return errors.Join(os.WriteFile(path+"x", []byte("y"), 0o600), os.Link(path+"x", path))
		},
	}
	for was, before := range kinds {
		for is, after := range kinds {
			p := newPair(t)
			must(t, before(p.at("it")))
			p.round()
			entries, err := os.ReadDir(p.from)
			must(t, err)
			for _, e := range entries {
				must(t, os.RemoveAll(p.at(e.Name())))
			}
			must(t, after(p.at("it")))
			p.round()
			p.equal(was + ", then " + is)
		}
	}
}

// A tree that is deeper than any path is long, with one file in branches far from each other.
func TestADeepTreeIsCopied(t *testing.T) {
	const deep = 300
	long := func(name string) string { return strings.Repeat(name, 100) }
	p := newPair(t)
	for _, branch := range []string{long("a"), long("b")} {
		at, err := unix.Open(p.from, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		for range deep {
			if err == nil {
				err = unix.Mkdirat(at, branch, 0o755)
			}
			if err == nil {
				up := at
				at, err = unix.Openat(up, branch, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
				unix.Close(up)
			}
		}
		must(t, err)
		switch f, err := unix.Openat(at, "file", unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o600); {
		case err != nil:
			t.Fatal(err)
		case branch == long("a"):
			must(t, unix.Linkat(at, "file", unix.AT_FDCWD, p.at("link"), 0))
			unix.Close(f)
		default:
			must(t, unix.Unlinkat(at, "file", 0), unix.Linkat(unix.AT_FDCWD, p.at("link"), at, "file", 0))
			unix.Close(f)
		}
		unix.Close(at)
	}
	p.round()
	p.equalSums("copied")
	p.round()
	p.equalSums("copied again")
	var st unix.Stat_t
	if err := unix.Lstat(filepath.Join(p.to, "link"), &st); err != nil || st.Nlink != 3 {
		t.Errorf("it has %d names, %v", st.Nlink, err)
	}
	must(t, os.RemoveAll(p.at(long("a"))), os.WriteFile(p.at(long("b")+"/shallow"), nil, 0o600))
	p.round()
	p.equalSums("one branch deleted")
}

// What SAFETY S12 says does not go with a file does not, and keeps no tree from moving.
func TestWhatDoesNotGoWithAFile(t *testing.T) {
	p := newPair(t)
	f, err := os.Create(p.at("reserved"))
	must(t, err)
	defer f.Close()
	must(t, unix.Fallocate(int(f.Fd()), 0, 0, 1<<20), f.Truncate(2<<20))
	times := []unix.Timespec{{Sec: 1}, {Sec: 2}}
	must(t, os.WriteFile(p.at("read"), nil, 0o600), unix.UtimesNanoAt(unix.AT_FDCWD, p.at("read"), times, 0))
	flagged := treetest.Root()
	if flagged {
		must(t, os.WriteFile(p.at("fixed"), []byte("x"), 0o600), unix.Setxattr(p.at("fixed"), "security.stead", []byte("x"), 0))
		fixed, err := os.Open(p.at("fixed"))
		must(t, err)
		defer fixed.Close()
		must(t, setFlags(fixed, immutable))
		defer func() { must(t, setFlags(fixed, 0)) }()
	}
	p.round()
	p.equalSums("copied")
	var st unix.Stat_t
	if err := unix.Lstat(filepath.Join(p.to, "reserved"), &st); err != nil || st.Size != 2<<20 || st.Blocks != 0 {
		t.Errorf("reserved space arrives as %d bytes in %d blocks, %v", st.Size, st.Blocks, err)
	}
	if err := unix.Lstat(filepath.Join(p.to, "read"), &st); err != nil || st.Atim.Sec == 1 || st.Mtim.Sec != 2 {
		t.Errorf("times %v and %v, %v", st.Atim, st.Mtim, err)
	}
	if !flagged {
		return
	}
	if _, err := unix.Lgetxattr(filepath.Join(p.to, "fixed"), "security.stead", make([]byte, 8)); !errors.Is(err, unix.ENODATA) {
		t.Errorf("a label of a security module: %v", err)
	}
	must(t, os.WriteFile(filepath.Join(p.to, "fixed"), []byte("x"), 0o600)) // it is not immutable
}

// immutable is FS_IMMUTABLE_FL of linux/fs.h: chattr +i.
const immutable = 0x10

func setFlags(f *os.File, flags int) error {
	return unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, flags)
}

// A tree in which something is mounted is refused.
func TestATreeOfSeveralFileSystemsIsRefused(t *testing.T) {
	var dev, shm unix.Stat_t
	if unix.Lstat("/dev", &dev) != nil || unix.Lstat("/dev/shm", &shm) != nil || dev.Dev == shm.Dev {
		t.Skip("nothing is mounted in /dev")
	}
	if err := Walk(t.Context(), "/dev", nothing{}); !errors.Is(err, ErrMounted) {
		t.Errorf("got %v", err)
	}
}

// nothing is a Visitor that does nothing.
type nothing struct{}

func (nothing) Enter(*os.File, int, string) error        { return nil }
func (nothing) Item(*os.File, *Item, *unix.Stat_t) error { return nil }
func (nothing) Leave() error                             { return nil }

// A tree is a directory, and no link to one.
func TestTheTopIsADirectory(t *testing.T) {
	p := newPair(t)
	must(t, os.Symlink(p.to, p.at("link")))
	if err := Walk(t.Context(), p.at("link"), nil); !errors.Is(err, unix.ELOOP) && !errors.Is(err, unix.ENOTDIR) {
		t.Errorf("the top is a link: %v", err)
	}
	if err := Walk(t.Context(), p.at("none"), nil); !errors.Is(err, unix.ENOENT) {
		t.Errorf("the top is not there: %v", err)
	}
}
