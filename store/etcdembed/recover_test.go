package etcdembed_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stead-project/stead/records/stores"
	"github.com/stead-project/stead/store/etcdembed"
)

// TestOneOfThreeGoesOnAlone: the data of two members is lost. What the third has becomes another store, which says that it is one.
func TestOneOfThreeGoesOnAlone(t *testing.T) {
	c := newServers(t)
	first := c.start("s1")
	second := c.join("s2", first)
	third := c.join("s3", second)
	put(t, third, "k", "confirmed by all")
	if got := get(t, second, "k"); got != "confirmed by all" {
		t.Fatalf("the second reads %q", got)
	}
	first.stop()
	third.stop()
	inner := filepath.Join(c.dir("s2"), "etcd")
	if _, err := etcdembed.MembersIn(inner); !errors.Is(err, etcdembed.ErrLocked) {
		t.Errorf("while it runs: %v", err)
	}
	if _, err := etcdembed.Recover(t.Context(), config(inner, 0), "x"); !errors.Is(err, etcdembed.ErrLocked) {
		t.Errorf("while it runs: %v", err)
	}
	second.stop()
	all, err := etcdembed.MembersIn(inner)
	if err != nil || len(all) != 3 || all[0].Name != "s1" || all[2].Peer != c.at["s3"] {
		t.Fatalf("members are %+v, %v", all, err)
	}
	for crashed := range 2 {
		if st, err := etcdembed.Recover(t.Context(), config(inner, 0), "of s2 alone"); err != nil || st.Keys == 0 {
			t.Fatalf("got %+v, %v", st, err)
		}
		if crashed == 0 { // it had not made the new store yet
			if err := os.RemoveAll(filepath.Join(inner, "data")); err != nil {
				t.Fatal(err)
			}
		}
	}
	alone := c.start("s2")
	if h := alone.Health(); h.Aside.Bytes == 0 || time.Since(h.Aside.At) > time.Hour {
		t.Errorf("of what was left aside it says %+v", h.Aside)
	}
	if acked, at := alone.Acked(alone.Self()), alone.Health(); acked.Term != at.Term || acked.Index < at.Index {
		t.Errorf("it leads, and has acknowledged %+v, at %+v", acked, at)
	}
	if acked := alone.Acked("5"); acked != (stores.Mark{}) {
		t.Errorf("of a member that is none: %+v", acked)
	}
	if got := get(t, alone, "k"); got != "confirmed by all" {
		t.Errorf("it reads %q", got)
	}
	if alone.UnpackedFrom() != "of s2 alone" {
		t.Errorf("it says that it was unpacked from %q", alone.UnpackedFrom())
	}
	if now := members(t, alone); len(now) != 1 || now[0].ID == all[1].ID || now[0].Peer != c.at["s2"] {
		t.Errorf("members are %+v", now)
	}
}

// TestAMemberWhoseLogWentBackIsNoticed: the log of a stopped member is as far as the member was, so an older copy of it is behind.
func TestAMemberWhoseLogWentBackIsNoticed(t *testing.T) {
	c := newServers(t)
	first := c.start("s1")
	second := c.join("s2", first)
	third := c.join("s3", second)
	third.stop()
	inner := filepath.Join(c.dir("s3"), "etcd")
	member, then, err := etcdembed.Mark(inner)
	if err != nil || member != third.Self() || then.Term == 0 || then.Index == 0 {
		t.Fatalf("got %s at %+v, %v", member, then, err)
	}
	third = c.start("s3")
	put(t, third, "k", "later")
	if got := get(t, third, "k"); got != "later" {
		t.Fatalf("it reads %q", got)
	}
	seen := third.Health()
	if seen.Index <= then.Index || seen.Term < then.Term {
		t.Errorf("while it runs it is at %+v, was at %+v", seen, then)
	}
	third.stop()
	if _, now, err := etcdembed.Mark(inner); err != nil || now.Index < seen.Index || now.Term < seen.Term {
		t.Errorf("after a stop its log is at %+v, %v; want %+v", now, err, seen)
	}
}

// TestAMemberThatIsSetBackSaysSo: an old copy of a member's data is put in place, and nobody noticed before it started. It ends in order and
// says what to do, instead of by a panic, and confirms nothing more. The one that leads knows what it had acknowledged.
func TestAMemberThatIsSetBackSaysSo(t *testing.T) {
	c := newServers(t)
	second := c.join("s2", c.start("s1"))
	third := c.join("s3", second)
	inner := filepath.Join(c.dir("s2"), "etcd")
	second.stop()
	copied := filepath.Join(c.dir("s2"), "old")
	if err := os.CopyFS(copied, os.DirFS(filepath.Join(inner, "data"))); err != nil {
		t.Fatal(err)
	}
	second = c.start("s2")
	for range 5 {
		put(t, third, "k", "later")
	}
	if got := get(t, second, "k"); got != "later" {
		t.Fatalf("it reads %q", got)
	}
	second.stop()
	if err := errors.Join(os.RemoveAll(filepath.Join(inner, "data")), os.Rename(copied, filepath.Join(inner, "data"))); err != nil {
		t.Fatal(err)
	}
	back, err := c.try("s2")
	if err == nil {
		select {
		case <-back.Ended():
			err = back.Why()
		case <-t.Context().Done():
		}
	}
	if !errors.Is(err, etcdembed.ErrSetBack) || !strings.Contains(err.Error(), "stead server replace s2") {
		t.Errorf("got %v", err)
	}
	put(t, third, "k", "without it")
}
