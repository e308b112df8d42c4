package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/moves"
)

// TestAMoveIsReadAtAGlance: in a column, and with all that is known of it in a line.
func TestAMoveIsReadAtAGlance(t *testing.T) {
	m := moves.ShownMove{
		Member: "db-1", Phase: moves.MoveCopying, From: "a", To: "b", By: "ann", BeganAt: time.Now().Add(-90 * time.Second),
		DoneBytes: 43 << 20, TotalBytes: 100 << 20, BytesPerSecond: 5 << 20, LimitBytesPerSecond: 10 << 20, Waits: "node b copies its volumes while it runs",
	}
	if got := moveText(&m); got != "a -> b Copying 43%" {
		t.Errorf("the column says %q", got)
	}
	if got, want := moveLine(&m), "a -> b Copying 43% (43Mi of 100Mi, 5Mi/s, at most 10Mi/s, for 90s by ann): node b copies its volumes while it runs"; got != want {
		t.Errorf("the line is\n%s, want\n%s", got, want)
	}
	m = moves.ShownMove{Member: "db-1", Phase: moves.MoveAborting, From: "a", To: "b", Why: "node b: the disk is full", Waits: "it starts again later"}
	if got, want := moveLine(&m), "a -> b Aborting (for -): given up: node b: the disk is full; it starts again later"; got != want {
		t.Errorf("the line is\n%s, want\n%s", got, want)
	}
	_, wide := memberRow(&shownMember{Status: records.ShownMember{MemberStatus: records.MemberStatus{Name: "db-1"}, Move: &m}})
	if wide[0] != "a -> b Aborting" || moveText(nil) != "" || !strings.Contains(strings.Join(columns["member"].wide, " "), "MOVE") {
		t.Errorf("the row is %v", wide)
	}
}
