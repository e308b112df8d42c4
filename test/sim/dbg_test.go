package sim

import (
	"flag"
	"testing"
)

var dbgSeed = flag.Uint64("seed", 0, "")
var dbgN = flag.Int("n", 1200, "")

func TestDbg(t *testing.T) {
	if *dbgSeed == 0 {
		t.Skip("needs -seed")
	}
	w := New(*dbgSeed, Plant{})
	w.Trace = func(s string) { t.Log(len(w.done), s) }
	v := w.Run(*dbgN)
	t.Log(v)
	if v != nil {
		s := w.Script().Shrink(v.Judge, 300)
		t.Log(len(s.Choices), s.String())
		s.Replay(func(s string) { t.Log("  ", s) })
	}
}
