package backup

import (
	"errors"
	"slices"
	"testing"
	"time"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// made is a backup of revision rev, as many hours old.
func made(name string, rev int64, hours int) Kept {
	return Kept{Name: name, Manifest: Manifest{Cluster: "c", Epoch: 1, Rev: rev, Made: noon.Add(-time.Duration(hours) * time.Hour)}}
}

func with(k Kept, change func(*Kept)) Kept {
	change(&k)
	return k
}

func TestWhichBackupsGo(t *testing.T) {
	broken := func(k *Kept) { k.Err = ErrDamaged }
	unread := func(k *Kept) { k.Unreadable = 1 }
	held := func(k *Kept) { k.Held = "it went back" }
	for _, c := range []struct {
		name  string
		rules Rules
		all   []Kept
		want  []string
	}{
		{"fewer than are kept", Rules{Keep: 3}, []Kept{made("a", 1, 2), made("new", 2, 0)}, nil},
		{"more than are kept", Rules{Keep: 2}, []Kept{made("a", 1, 3), made("b", 2, 2), made("c", 3, 1), made("new", 4, 0)}, []string{"a", "b"}},
		{"too old", Rules{Keep: 9, MaxAge: 2 * time.Hour}, []Kept{made("a", 1, 3), made("b", 2, 1), made("new", 4, 0)}, []string{"a"}},
		{"the new one is all that is kept", Rules{Keep: 1}, []Kept{made("a", 1, 3), made("new", 4, 0)}, []string{"a"}},
		{"the new one is not good: the newest good one stays", Rules{Keep: 1, MaxAge: time.Hour},
			[]Kept{made("a", 1, 9), made("b", 2, 8), with(made("c", 3, 7), unread), with(made("new", 4, 0), unread)}, []string{"a", "c"}},
		{"of a store that was held: no good one", Rules{Keep: 1}, []Kept{made("a", 1, 9), with(made("c", 3, 7), held), with(made("new", 4, 0), held)}, []string{"c"}},
		{"by the store's order, not by clocks", Rules{Keep: 2},
			[]Kept{made("a", 7, -99), with(made("later epoch", 1, 50), func(k *Kept) { k.Epoch = 2 }), with(made("new", 2, 0), func(k *Kept) { k.Epoch = 2 })}, []string{"a"}},
		{"damaged ones count for nothing and are left to a person", Rules{Keep: 2}, []Kept{made("a", 1, 3), with(made("b", 2, 2), broken), made("new", 4, 0)}, nil},
		{"those of another cluster are not ours", Rules{Keep: 1}, []Kept{with(made("a", 1, 3), func(k *Kept) { k.Cluster = "other" }), made("new", 4, 0)}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := c.rules.Old(c.all, "new", "c", noon)
			slices.Sort(got)
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestWhenABackupIsDue(t *testing.T) {
	rules := Rules{Every: 6 * time.Hour}
	for _, c := range []struct {
		name string
		all  []Kept
		want time.Duration
	}{
		{"none is there", nil, 0},
		{"the last is young", []Kept{made("a", 1, 9), made("b", 2, 2)}, 4 * time.Hour},
		{"the last is old", []Kept{made("a", 1, 9)}, 0},
		{"the last is of a wrong clock", []Kept{made("a", 1, -100)}, 0},
		{"the last is damaged", []Kept{made("a", 1, 9), with(made("b", 2, 2), func(k *Kept) { k.Err = errors.New("bad") })}, 0},
		{"the last has records that cannot be read: it was made", []Kept{with(made("b", 2, 2), func(k *Kept) { k.Unreadable = 3 })}, 4 * time.Hour},
		{"the last is of another cluster", []Kept{with(made("b", 2, 2), func(k *Kept) { k.Cluster = "other" })}, 0},
	} {
		if got := rules.Due(newest(c.all, "c", (*Kept).whole), noon); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}
