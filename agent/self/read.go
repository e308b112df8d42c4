package self

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/records"
)

// read is what the files of a directory say. It follows no link, crosses no mount, waits for nobody, and reads no
// more than the bounds: who writes there is not to be believed.
func read(dir *os.File) records.Claim {
	files := map[string][]byte{}
	for name, most := range bounds {
		if content, err := readFile(dir, name, most); err == nil {
			files[name] = content
		}
	}
	return parse(files)
}

var errRefused = errors.New("no file that can be read")

func readFile(dir *os.File, name string, most int64) ([]byte, error) {
	fd, err := unix.Openat2(int(dir.Fd()), name, &unix.OpenHow{
		Flags:   unix.O_RDONLY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_XDEV | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() || st.Size() > most {
		return nil, errors.Join(err, errRefused)
	}
	content, err := io.ReadAll(io.LimitReader(f, most+1)) // it may have grown since
	if err == nil && int64(len(content)) > most {
		err = errRefused
	}
	return content, err
}
