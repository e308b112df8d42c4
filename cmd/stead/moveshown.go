package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/moves"
	"github.com/stead-project/stead/spec"
)

// moveText is where a member goes, and how far it is, for a column: "host-a -> host-b Copying 43%"; "": it does not move.
func moveText(m *moves.ShownMove) string {
	if m == nil {
		return ""
	}
	text := fmt.Sprintf("%s -> %s %s", m.From, m.To, m.Phase)
	if percent := m.Percent(); percent >= 0 {
		text += fmt.Sprintf(" %d%%", percent)
	}
	return text
}

// moveLine is all about a move in one line.
func moveLine(m *moves.ShownMove) string {
	var parts []string
	if m.TotalBytes > 0 {
		parts = append(parts, fmt.Sprintf("%s of %s", bytesText(m.DoneBytes), bytesText(m.TotalBytes)))
	}
	if m.BytesPerSecond > 0 {
		parts = append(parts, bytesText(m.BytesPerSecond)+"/s")
	}
	if m.LimitBytesPerSecond > 0 {
		parts = append(parts, "at most "+bytesText(m.LimitBytesPerSecond)+"/s")
	}
	since := "for " + age(m.BeganAt)
	if m.By != "" {
		since += " by " + m.By
	}
	text := fmt.Sprintf("%s (%s): ", moveText(m), strings.Join(append(parts, since), ", "))
	if m.Why != "" {
		text += fmt.Sprintf("given up: %s; ", m.Why)
	}
	return text + m.Waits
}

// printMoves prints the moves of all sets that are asked for or under way.
func printMoves(out io.Writer, sets []*proto.Object) error {
	var lines []string
	for _, p := range sets {
		o, err := decode[spec.SetSpec, records.ShownSet](p)
		if err != nil {
			return err
		}
		for i := range o.Status.Moves {
			m := &o.Status.Moves[i]
			lines = append(lines, fmt.Sprintf("%s/%s %s", p.GetNamespace(), m.Member, moveLine(m)))
		}
	}
	if len(lines) == 0 {
		return nil
	}
	fact(out, "moves", "%d under way or asked for", len(lines))
	for _, line := range lines[:min(len(lines), shownMoves)] {
		fact(out, "", "%s", line)
	}
	if more := len(lines) - shownMoves; more > 0 {
		fact(out, "", "and %d more; 'stead get members -A -o wide' shows them", more)
	}
	return nil
}

// shownMoves limits the moves that 'stead status' names.
const shownMoves = 10
