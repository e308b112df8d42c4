package watchdog

import (
	"errors"
	"io/fs"
	"os"
	"testing"
	"time"
)

func TestCondemned(t *testing.T) {
	const s = time.Second
	life := Record{Token: "1.7", Bound: 10 * s, Cgroup: "/a"}
	ended := life
	ended.Ended = true
	for _, c := range []struct {
		name           string
		r              Record
		confirmed, now time.Duration
		want           bool
	}{
		{"before its deadline a life goes on", life, 100 * s, 110*s - 1, false},
		{"at its deadline it ends", life, 100 * s, 110 * s, true},
		{"and long after", life, 100 * s, 1000 * s, true},
		{"at the very moment of a confirmation it goes on", life, 100 * s, 100 * s, false},
		{"one that was ended stays so, whatever is confirmed", ended, 100 * s, 101 * s, true},
		{"a node that was never confirmed has no guarded life", life, 0, 5 * s, true},
		{"a moment that lies ahead, of another boot, confirms nothing", life, 200 * s, 100 * s, true},
	} {
		if got := condemned(c.r, c.confirmed, c.now); got != c.want {
			t.Errorf("%s: got %v", c.name, got)
		}
	}
}

func TestARecordIsThereWholeOrNotAtAll(t *testing.T) {
	d := Dir(t.TempDir())
	must(t, d.Make())
	if got, err := d.Confirmed(); got != 0 || err != nil {
		t.Errorf("confirmed %v, %v before any was", got, err)
	}
	must(t, d.Confirm(12345*time.Millisecond))
	if got, err := d.Confirmed(); got != 12345*time.Millisecond || err != nil {
		t.Errorf("confirmed %v, %v", got, err)
	}
	want := record("1.7", time.Minute)
	must(t, d.Put(member, want))
	got, err := d.Records()
	if err != nil || len(got) != 1 || got[member] != want {
		t.Errorf("records %+v, %v", got, err)
	}
	for _, bad := range []string{"", "{}", `{"token":"1.7","bound":0,"cgroup":"/a"}`, `{"token":"1.7","bound":1,"cgroup":"/"}`, `{"token":"1.7","bound":1,"cgroup":"a"}`} {
		must(t, os.WriteFile(d.Record(member), []byte(bad), 0o600))
		if got, err := d.Records(); err == nil || len(got) != 0 {
			t.Errorf("record %q is read as %+v, %v", bad, got, err)
		}
	}
	must(t, d.Remove(member))
	must(t, d.Remove(member))
	if _, err := read(d.Record(member)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after its removal: %v", err)
	}
}
