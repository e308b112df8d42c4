package network

import (
	"encoding/binary"
	"testing"
)

func TestATableThatIsCutOffIsNoPolicy(t *testing.T) {
	info := make([]byte, infoBytes)
	binary.NativeEndian.PutUint32(info[infoHooks:], 1<<hookForward)
	binary.NativeEndian.PutUint32(info[infoPolicies+4*hookForward:], 8)
	whole := make([]byte, 8+112+targetVerdict+4)
	binary.NativeEndian.PutUint16(whole[8+entryTarget:], 112)
	binary.NativeEndian.PutUint32(whole[8+112+targetVerdict:], ^uint32(0))
	if drops, err := forwardDrops(info, whole); err != nil || !drops {
		t.Errorf("the whole table: %t, %v; want that it drops", drops, err)
	}
	for n := range len(whole) {
		if _, err := forwardDrops(info, whole[:n]); err == nil {
			t.Errorf("%d of %d bytes: no error", n, len(whole))
		}
	}
	binary.NativeEndian.PutUint32(whole[8+112+targetVerdict:], ^uint32(1))
	if drops, err := forwardDrops(info, whole); err != nil || drops {
		t.Errorf("a policy that accepts: %t, %v", drops, err)
	}
	if drops, err := forwardDrops(make([]byte, infoBytes), nil); err != nil || drops {
		t.Errorf("a table without the chain: %t, %v", drops, err)
	}
}
