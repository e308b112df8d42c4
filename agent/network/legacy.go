package network

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The kernel's interface to the tables of iptables-legacy, which nftables does not
// show: linux/netfilter_ipv4/ip_tables.h.
const (
	getInfo    = 64 // IPT_SO_GET_INFO
	getEntries = 65 // IPT_SO_GET_ENTRIES

	tableName    = 32                       // bytes of a table's name
	infoBytes    = tableName + 13*4         // struct ipt_getinfo
	infoHooks    = tableName                // .valid_hooks
	infoPolicies = tableName + 4 + 5*4      // .underflow
	infoSize     = tableName + 4 + 10*4 + 4 // .size
	entriesHead  = tableName + 8            // struct ipt_get_entries before its entries

	entryTarget   = 84 + 4 // ipt_entry.target_offset, after ipt_ip and nfcache
	targetVerdict = 32     // xt_standard_target.verdict, after xt_entry_target

	hookForward = 2  // NF_INET_FORWARD
	verdictDrop = -1 // -NF_DROP - 1
)

// legacyDrops reports whether the chain FORWARD of iptables-legacy drops by default,
// in the namespace of the calling thread. Nothing is loaded for looking: a table that
// does not stand is not asked for.
func legacyDrops() (bool, error) {
	names, err := os.ReadFile("/proc/thread-self/net/ip_tables_names")
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil // a kernel without such tables
	}
	if err != nil {
		return false, err
	}
	if !slices.Contains(strings.Fields(string(names)), "filter") {
		return false, nil
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_RAW)
	if err != nil {
		return false, fmt.Errorf("open raw socket: %w", err)
	}
	defer unix.Close(fd)
	info := make([]byte, infoBytes)
	copy(info, "filter")
	if err := getsockopt(fd, getInfo, info); err != nil {
		return false, fmt.Errorf("ask for table filter: %w", err)
	}
	size := binary.NativeEndian.Uint32(info[infoSize:])
	table := make([]byte, entriesHead+int(size))
	copy(table, "filter")
	binary.NativeEndian.PutUint32(table[tableName:], size)
	if err := getsockopt(fd, getEntries, table); err != nil {
		return false, fmt.Errorf("read table filter: %w", err) // also when it changed in between
	}
	return forwardDrops(info, table[entriesHead:])
}

// forwardDrops finds the policy of FORWARD: the verdict of the entry that is reached
// when no rule decided.
func forwardDrops(info, entries []byte) (bool, error) {
	if binary.NativeEndian.Uint32(info[infoHooks:])&(1<<hookForward) == 0 {
		return false, nil
	}
	at := uint64(binary.NativeEndian.Uint32(info[infoPolicies+4*hookForward:]))
	if at+entryTarget+2 > uint64(len(entries)) {
		return false, fmt.Errorf("table filter: policy at %d of %d bytes", at, len(entries))
	}
	target := at + uint64(binary.NativeEndian.Uint16(entries[at+entryTarget:]))
	if target+targetVerdict+4 > uint64(len(entries)) {
		return false, fmt.Errorf("table filter: verdict at %d of %d bytes", target, len(entries))
	}
	return int32(binary.NativeEndian.Uint32(entries[target+targetVerdict:])) == verdictDrop, nil
}

// getsockopt fills b, which the kernel also reads. The system's own wrapper cannot
// hand in what it reads.
func getsockopt(fd, option int, b []byte) error {
	size := uint32(len(b))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.IPPROTO_IP, uintptr(option),
		uintptr(unsafe.Pointer(&b[0])), uintptr(unsafe.Pointer(&size)), 0)
	if errno != 0 {
		return errno
	}
	return nil
}
