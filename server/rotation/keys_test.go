package rotation

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stead-project/stead/records/sealing"
)

type ids = []sealing.KeyID

func TestTheNextStepOfAKeysRotation(t *testing.T) {
	spread := &sealing.Ring{Sealing: "a", Next: "b", Opening: ids{"z"}}
	resealing := &sealing.Ring{Sealing: "b", Opening: ids{"a", "z"}, Resealing: true}
	done := &sealing.Ring{Sealing: "b", Opening: ids{"a", "z"}}
	for _, tt := range []struct {
		name string
		k    KeyWorld
		want KeyStep
		wait string
	}{
		{name: "it was never rotated", k: KeyWorld{Servers: []string{"s1"}}},
		{name: "a server that is known has not said that it has the new key",
			k: KeyWorld{Ring: spread, Servers: []string{"s1", "s2"}, Said: map[string]ids{"s1": {"a", "b"}, "s2": {"a"}}, Settled: true}, wait: "waits for s2: start"},
		{name: "a server that is known has said nothing",
			k: KeyWorld{Ring: spread, Servers: []string{"s1", "s2"}, Said: map[string]ids{"s1": {"a", "b"}}, Settled: true}, wait: "waits for s2: start"},
		{name: "servers that are not known have a moment", k: KeyWorld{Ring: spread, Servers: []string{"s1"}, Said: map[string]ids{"s1": {"a", "b"}}}, wait: "moment"},
		{name: "all have it, so it seals, and the one before opens",
			k: KeyWorld{Ring: spread, Servers: []string{"s1"}, Said: map[string]ids{"s1": {"a", "b"}}, Settled: true}, want: KeyStep{Write: resealing}},
		{name: "a server that is not waited for",
			k:    KeyWorld{Ring: &sealing.Ring{Sealing: "a", Next: "b", Opening: ids{"z"}, Without: []string{"s2"}}, Servers: []string{"s1", "s2"}, Said: map[string]ids{"s1": {"a", "b"}}, Settled: true},
			want: KeyStep{Write: &sealing.Ring{Sealing: "b", Opening: ids{"a", "z"}, Resealing: true, Without: []string{"s2"}}}},
		{name: "what is sealed is counted first", k: KeyWorld{Ring: resealing}, want: KeyStep{Look: true}},
		{name: "what is under the old key is sealed anew", k: KeyWorld{Ring: resealing, Under: map[sealing.KeyID]int{"a": 2, "b": 7}}, want: KeyStep{Reseal: true}},
		{name: "also while some is under a key that is lost", k: KeyWorld{Ring: resealing, Under: map[sealing.KeyID]int{"a": 2, "": 1}}, want: KeyStep{Reseal: true}},
		{name: "what is under a lost key is told", k: KeyWorld{Ring: resealing, Under: map[sealing.KeyID]int{"": 1, "b": 1}}, wait: "1 records"},
		{name: "nothing is left under others", k: KeyWorld{Ring: resealing, Under: map[sealing.KeyID]int{"b": 9}}, want: KeyStep{Write: done}},
		{name: "nothing was sealed at all", k: KeyWorld{Ring: resealing, Under: map[sealing.KeyID]int{}}, want: KeyStep{Write: done}},
		{name: "it is over", k: KeyWorld{Ring: done, Servers: []string{"s9"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := NextKeys(tt.k)
			if !strings.Contains(got.Wait, tt.wait) || (tt.wait == "") != (got.Wait == "") {
				t.Fatalf("it waits for %q; want %q", got.Wait, tt.wait)
			}
			got.Wait = ""
			if !reflect.DeepEqual(tt.want, got) {
				t.Errorf("got %+v; want %+v", got, tt.want)
			}
		})
	}
}

func TestWhichKeyMayBeRemoved(t *testing.T) {
	ring := &sealing.Ring{Sealing: "b", Opening: ids{"a"}, Removed: ids{"z"}}
	said := map[string]ids{"s1": {"a", "b", "stray"}}
	for _, tt := range []struct {
		name string
		k    KeyWorld
		id   sealing.KeyID
		want *sealing.Ring
		err  string
	}{
		{"none was rotated", KeyWorld{}, "a", nil, "never rotated"},
		{"the one that seals", KeyWorld{Ring: ring, Said: said}, "b", nil, "seals"},
		{"something is under it", KeyWorld{Ring: ring, Said: said, Under: map[sealing.KeyID]int{"a": 1}}, "a", nil, "1 records"},
		{"something may be under it", KeyWorld{Ring: ring, Said: said, Under: map[sealing.KeyID]int{"": 1}}, "a", nil, "lacks"},
		{"a rotation waits", KeyWorld{Ring: &sealing.Ring{Sealing: "b", Next: "c", Opening: ids{"a"}}, Said: said}, "a", nil, "under way"},
		{"what is sealed is being sealed anew", KeyWorld{Ring: &sealing.Ring{Sealing: "b", Resealing: true, Opening: ids{"a"}}, Said: said}, "a", nil, "under way"},
		{"nobody has it", KeyWorld{Ring: ring, Said: said}, "q", nil, "no server"},
		{"it was removed", KeyWorld{Ring: ring, Said: said}, "z", nil, ""},
		{"nothing is under it", KeyWorld{Ring: ring, Said: said, Under: map[sealing.KeyID]int{"b": 3}}, "a", &sealing.Ring{Sealing: "b", Opening: ids{}, Removed: ids{"z", "a"}}, ""},
		{"a server has it from elsewhere", KeyWorld{Ring: ring, Said: said}, "stray", &sealing.Ring{Sealing: "b", Opening: ids{"a"}, Removed: ids{"z", "stray"}}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := RemoveKey(tt.k, tt.id)
			if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Fatalf("got %v; want %q", err, tt.err)
			}
			if !reflect.DeepEqual(tt.want, got) {
				t.Errorf("got %+v; want %+v", got, tt.want)
			}
		})
	}
	if !slices.Equal(ring.Opening, ids{"a"}) {
		t.Error("the ring that was given is changed")
	}
}

func TestWhenAKeyMayBeRotated(t *testing.T) {
	waits := KeyWorld{Ring: &sealing.Ring{Sealing: "a", Next: "b"}, Servers: []string{"s1"}, Said: map[string]ids{"s1": {"a", "b"}}}
	if _, err := Rotate(waits, "a", "c", nil); err == nil {
		t.Error("a second rotation begins while one waits")
	}
	lost := KeyWorld{Ring: &sealing.Ring{Sealing: "a", Next: "b"}, Servers: []string{"s1"}, Said: map[string]ids{"s1": {"a"}}}
	if next, err := Rotate(lost, "a", "c", nil); err != nil || next.Next != "c" || next.Sealing != "a" {
		t.Errorf("got %+v, %v; want another new key, because no server has that one", next, err)
	}
	if _, err := Rotate(KeyWorld{Ring: &sealing.Ring{Sealing: "b", Resealing: true}}, "b", "c", nil); err == nil {
		t.Error("a second rotation begins while records are sealed anew")
	}
	first, err := Rotate(KeyWorld{}, "a", "b", []string{"s3"})
	if err != nil || !reflect.DeepEqual(&sealing.Ring{Sealing: "a", Next: "b", Without: []string{"s3"}}, first) {
		t.Errorf("got %+v, %v", first, err)
	}
	if next, ok := Without(waits, []string{"s2"}); !ok || !slices.Equal(next.Without, []string{"s2"}) {
		t.Errorf("got %+v, %v", next, ok)
	}
	if _, ok := Without(KeyWorld{}, []string{"s2"}); ok {
		t.Error("nothing waits")
	}
}

func TestWhatAServerDoesAboutItsOwnKeys(t *testing.T) {
	ring := &sealing.Ring{Sealing: "b", Next: "c", Opening: ids{"a"}, Removed: ids{"z", "y"}}
	for _, tt := range []struct {
		name          string
		o             OwnKeys
		missing, drop ids
	}{
		{"none was rotated", OwnKeys{Has: ids{"a"}}, nil, nil},
		{"it has all", OwnKeys{Ring: ring, Has: ids{"a", "b", "c"}}, ids{}, ids{}},
		{"it was away", OwnKeys{Ring: ring, Has: ids{"a"}}, ids{"b", "c"}, nil},
		{"it forgets nothing before it has what seals", OwnKeys{Ring: ring, Has: ids{"z"}}, ids{"b", "c", "a"}, nil},
		{"it forgets what was removed, and no more", OwnKeys{Ring: ring, Has: ids{"b", "y", "z", "stray"}}, ids{"c", "a"}, ids{"y", "z"}},
		{"it keeps what is wanted, whatever was removed", OwnKeys{Ring: &sealing.Ring{Sealing: "b", Opening: ids{"a"}, Removed: ids{"a"}}, Has: ids{"a", "b"}}, ids{}, ids{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if !reflect.DeepEqual(tt.missing, tt.o.Missing()) {
				t.Errorf("missing: got %+v; want %+v", tt.o.Missing(), tt.missing)
			}
			if !reflect.DeepEqual(tt.drop, tt.o.Drop()) {
				t.Errorf("drop: got %+v; want %+v", tt.o.Drop(), tt.drop)
			}
		})
	}
}
