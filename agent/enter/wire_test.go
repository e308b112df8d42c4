package enter

import (
	"bytes"
	"encoding/binary"
	"reflect"
	"strings"
	"testing"
)

// fill gives each exported field below v another value, lists two elements.
func fill(t *testing.T, v reflect.Value, next *uint8) {
	t.Helper()
	*next++
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.String:
		v.SetString(strings.Repeat("x", int(*next)))
	case reflect.Int:
		v.SetInt(-int64(*next))
	case reflect.Uint8, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		v.SetUint(uint64(*next))
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fallthrough
	case reflect.Array:
		for i := range v.Len() {
			fill(t, v.Index(i), next)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(t, v.Field(i), next)
			}
		}
	default:
		t.Fatalf("a field is a %v, which is not known here", v.Kind())
	}
}

// TestAPlanArrivesWithAllItsFields: also with one that is added later.
func TestAPlanArrivesWithAllItsFields(t *testing.T) {
	var next uint8
	var p, got Plan
	fill(t, reflect.ValueOf(&p).Elem(), &next)
	for name, p := range map[string]Plan{"all": p, "none": {}} {
		var conn bytes.Buffer
		if err := send(&conn, p.wire); err != nil {
			t.Fatal(err)
		}
		if err := receive(&conn, got.wire); err != nil || !reflect.DeepEqual(got, p) {
			t.Errorf("%s: %v, got %+v\nwant %+v", name, err, got, p)
		}
		got = Plan{}
	}
	var m, answer message
	fill(t, reflect.ValueOf(&m).Elem(), &next)
	var conn bytes.Buffer
	if err := send(&conn, m.wire); err != nil {
		t.Fatal(err)
	}
	if err := receive(&conn, answer.wire); err != nil || answer != m {
		t.Errorf("%v, got %+v, want %+v", err, answer, m)
	}
}

// sent is a filled plan as it travels, without the length in front.
func sent(t testing.TB) []byte {
	t.Helper()
	p := Plan{Command: []string{"a", "b"}, Env: []string{"C=d"}, Groups: []uint32{1}, Limits: []Limit{{1, 2, 3}}, Filter: []byte{1}}
	var conn bytes.Buffer
	if err := send(&conn, p.wire); err != nil {
		t.Fatal(err)
	}
	return conn.Bytes()[sizeBytes:]
}

// framed puts a length in front.
func framed(text []byte) *bytes.Reader {
	return bytes.NewReader(append(binary.LittleEndian.AppendUint32(nil, uint32(len(text))), text...))
}

func TestWhatIsNoPlanIsRefused(t *testing.T) {
	whole := sent(t)
	var p Plan
	if err := receive(framed(whole), p.wire); err != nil {
		t.Fatal(err)
	}
	for n := range whole {
		if err := receive(framed(whole[:n]), new(Plan).wire); err == nil {
			t.Fatalf("the first %d of %d bytes were taken for a plan", n, len(whole))
		}
	}
	set := func(at int, to uint64) []byte {
		text := bytes.Clone(whole)
		binary.LittleEndian.PutUint64(text[at:], to)
		return text
	}
	for name, text := range map[string][]byte{
		"more behind":              append(bytes.Clone(whole), 0),
		"a list without end":       set(0, 1<<40),
		"a list of less than none": set(0, 1<<63),
		"a text without end":       set(8, 1<<62),
		"noise":                    bytes.Repeat([]byte{0xff}, 300),
	} {
		if err := receive(framed(text), new(Plan).wire); err == nil {
			t.Errorf("%s was taken for a plan", name)
		}
	}
	user := 8 + (8 + 1) + (8 + 1) + 8 + (8 + 3) + 8 // behind Command, Env and Dir
	if err := receive(framed(set(user, 7)), p.wire); err != nil || p.UID != 7 {
		t.Fatalf("user %d, %v: the user is elsewhere", p.UID, err)
	}
	if err := receive(framed(set(user, 1<<32)), p.wire); err == nil {
		t.Errorf("a number that is too large became user %d", p.UID)
	}
}

func TestNoMoreThanTheBoundIsSentOrReceived(t *testing.T) {
	long := Plan{Env: []string{strings.Repeat("x", maxWire)}}
	var conn bytes.Buffer
	if err := send(&conn, long.wire); err == nil || conn.Len() > 0 {
		t.Errorf("%v, %d bytes were sent", err, conn.Len())
	}
	allocated := testing.AllocsPerRun(1, func() {
		if err := receive(bytes.NewReader([]byte{0xff, 0xff, 0xff, 0xff}), new(Plan).wire); err == nil {
			t.Error("4 GiB were waited for")
		}
	})
	if allocated > 10 {
		t.Errorf("%v allocations", allocated)
	}
	whole := Plan{Command: []string{"/bin/test", strings.Repeat("x", 128<<10)}, Env: []string{strings.Repeat("x", 2<<20)}}
	var got Plan
	if err := send(&conn, whole.wire); err != nil {
		t.Fatal(err)
	}
	if err := receive(&conn, got.wire); err != nil || !reflect.DeepEqual(got, whole) {
		t.Errorf("a plan of 2 MiB: %v", err)
	}
}

// FuzzReceive: whatever comes is taken or refused, and what is taken is sent again alike.
func FuzzReceive(f *testing.F) {
	f.Add(sent(f))
	f.Add([]byte(nil))
	f.Fuzz(func(t *testing.T, text []byte) {
		var p Plan
		if receive(framed(text), p.wire) != nil {
			return
		}
		var conn bytes.Buffer
		if err := send(&conn, p.wire); err != nil || !bytes.Equal(conn.Bytes()[sizeBytes:], text) {
			t.Errorf("%v, %x was sent again as %x", err, text, conn.Bytes()[sizeBytes:])
		}
	})
}
