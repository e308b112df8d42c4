package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// soakFor is how long a test may go on by chance, beyond its short form: zero but in
// `make soak`, which sets STEAD_SOAK to a duration. The seed is STEAD_SOAK_SEED or
// drawn, and always told: with it the acts are the same again, though not the
// moments at which they meet the machine.
func soakFor(t testing.TB) (time.Duration, *rand.Rand) {
	t.Helper()
	asked := os.Getenv("STEAD_SOAK")
	if asked == "" {
		return 0, nil
	}
	length, err := time.ParseDuration(asked)
	if err != nil {
		t.Fatalf("STEAD_SOAK: %v", err)
	}
	seed := rand.Uint64N(1e6)
	if text := os.Getenv("STEAD_SOAK_SEED"); text != "" {
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("STEAD_SOAK_SEED: %v", err)
		}
	}
	t.Logf("soak for %v with seed %d", length, seed)
	return length, rand.New(rand.NewPCG(seed, 0))
}

// soak does acts by chance until the soak's time is over, and counts them.
func (d *database) soak() {
	d.t.Helper()
	length, chance := soakFor(d.t)
	if length == 0 {
		return
	}
	acts := []act{
		{"rolling update", d.roll},
		{"bad update, undone", func() { d.wedge(); d.undo() }},
		{"bad update, cured", func() { d.wedge(); d.cure() }},
		{"emptied disk", func() { d.wipe(1 + chance.IntN(2)); d.roll() }},
		{"all killed", func() { d.killAll(); d.roll() }},
		{"member killed", func() { d.killOne(chance.IntN(3)); d.roll() }},
		{"member restarted", func() { d.restart(chance.IntN(3)) }},
		{"server killed", func() { d.fell(&d.server, func() { d.startServer() }) }},
		{"agent killed", func() { d.fell(&d.agent, func() { d.startAgent() }) }},
		{"containerd killed", func() { d.fell(&d.containerd, d.startContainerd) }},
		{"scaled to 5 and back", d.breathe},
	}
	counts, end := map[string]int{}, time.Now().Add(length)
	for time.Now().Before(end) && !d.t.Failed() {
		a := acts[chance.IntN(len(acts))]
		d.t.Log(a.what)
		a.do()
		counts[a.what]++
	}
	d.t.Logf("acts: %v", counts)
}

// killOne ends a member's processes. (Each such act ends with an update: new lives
// begin without the back-off that a crash leaves behind.)
func (d *database) killOne(ordinal int) {
	d.t.Helper()
	was, before := d.tales(), d.mustMember(d.name(ordinal))
	d.killMember(d.name(ordinal))
	d.waitReadyFor(2*time.Minute, d.name(ordinal), &before)
	d.untouched(was, d.others(ordinal)...)
	d.waitWhole(d.size)
}

// restart gives a member another life by an operator's word.
func (d *database) restart(ordinal int) {
	d.t.Helper()
	was, before := d.tales(), d.mustMember(d.name(ordinal))
	d.stead("restart", d.name(ordinal))
	d.waitReadyFor(2*time.Minute, d.name(ordinal), &before)
	d.replaced(was, ordinal)
	d.untouched(was, d.others(ordinal)...)
	d.waitWhole(d.size)
}

// fell kills one of Stead's own parts: no member is touched.
func (d *database) fell(part **process, again func()) {
	d.t.Helper()
	was := d.tales()
	_ = (*part).signal(syscall.SIGKILL)
	again()
	for i := range d.size {
		d.waitReady(d.name(i), nil)
	}
	d.untouched(was, d.initial()...)
}

// breathe adds two members and takes them out again.
func (d *database) breathe() {
	d.t.Helper()
	was := d.tales()
	for _, n := range []int{5, 3} {
		d.stead("scale", d.set, "--replicas", fmt.Sprint(n), "--wait", "--timeout", patience)
		d.waitWhole(n)
	}
	d.most = 5
	d.untouched(was, d.initial()...)
}

// initial are the ordinals of the members with which the set began.
func (d *database) initial() (list []int) {
	for i := range d.size {
		list = append(list, i)
	}
	return list
}

// others are the initial ordinals beside one.
func (d *database) others(ordinal int) []int { return slices.Delete(d.initial(), ordinal, ordinal+1) }
