package step

import (
	"flag"
	"fmt"
	"slices"
	"testing"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

var seedFlag = flag.Int64("seed", 0, "run the model with this seed only")

// disturb does something that may happen at any time.
func (m *model) disturb() {
	newest := max(m.latest.Number, 1)
	any := spec.Token{Epoch: 1, Number: 1 + m.rng.Int63n(newest)}
	m.killers()
	if m.hook == HookRunning && m.rng.Intn(4) == 0 {
		m.note("the hook returns")
		m.hook = HookOver
	}
	switch m.rng.Intn(17) {
	case 0:
		m.latest = spec.Token{Epoch: 1, Number: m.latest.Number + 1}
		m.tell(m.latest, records.GoalRun)
	case 1:
		if !m.latest.IsZero() {
			m.tell(m.latest, records.GoalStop)
		}
	case 2:
		if !m.latest.IsZero() {
			m.tell(any, records.GoalRun) // stale
		}
	case 3:
		m.crash()
	case 4:
		if m.rng.Intn(4) == 0 {
			m.reboot()
		}
	case 5, 6:
		if m.box == Running {
			m.note("container exits")
			m.box, m.alive, m.ending, m.overtime = Exited, spec.Token{}, false, false
		}
	case 7:
		if m.box == Running && m.rng.Intn(4) == 0 {
			m.note("container is lost, its process lives")
			m.box = Lost
		}
	case 8:
		m.away = !m.away
	case 9:
		m.grace = m.signal
	case 11:
		m.cut = !m.cut
		m.note("cut off: %v", m.cut)
		// What missed its deadline was closed before the node is confirmed anew.
		if !m.cut && m.late && m.memory.Open == m.record && !m.record.IsZero() {
			m.close(m.record)
		}
	case 12:
		if m.cut && !m.record.IsZero() {
			m.note("the deadline of %s passes", m.record)
			m.late = true
		}
	case 15:
		m.note("image %d is ordered in place", m.want+1)
		m.want, m.prepared.image = m.want+1, false
	case 16:
		m.overtime = m.ending
	case 13, 14:
		m.watched = !m.record.IsZero()
	case 10:
		if len(m.memory.Ends) > 0 && m.told[m.memory.Ends[0]] {
			m.note("stored %s", m.memory.Ends[0])
			m.memory.Ends = slices.Delete(m.memory.Ends, 0, 1)
		}
	}
}

func (m *model) step() error {
	op := Next(m.look())
	if op.Kind == Nothing || op.Kind == Wait {
		return nil
	}
	if m.rng.Intn(12) == 0 {
		m.crash() // before the effect
		return nil
	}
	err := m.do(op)
	if err == nil && m.rng.Intn(12) == 0 {
		m.crash() // after it
	}
	return err
}

// settle is the world without faults: what the server last wanted comes true, and then a change in place of it.
func (m *model) settle() error {
	m.away, m.cut = false, false
	if m.late && m.memory.Open == m.record && !m.record.IsZero() {
		m.close(m.record)
	}
	if m.box == Lost { // its process ends at last
		m.alive = spec.Token{}
	}
	m.latest = spec.Token{Epoch: 1, Number: m.latest.Number + 1}
	m.tell(m.latest, records.GoalRun)
	for range 2 {
		for range 60 {
			m.grace, m.watched, m.overtime = m.signal, !m.record.IsZero(), m.ending
			m.killers()
			if err := m.do(Next(m.look())); err != nil {
				return err
			}
		}
		if m.alive != m.latest || m.image != m.want {
			return fmt.Errorf("the last life, %s, does not run with image %d; alive: %s with %d", m.latest, m.want, m.alive, m.image)
		}
		m.want, m.prepared.image = m.want+1, false
	}
	return nil
}

func (m *model) run(steps int) error {
	for range steps {
		if m.rng.Intn(3) == 0 {
			m.disturb()
		}
		if err := m.step(); err != nil {
			return err
		}
	}
	return m.settle()
}

// Through crashes at every point, reboots, stale orders and a runtime that loses
// sight of its containers: no token is started after it was closed, no two live at
// once, none is told to be over before all of it is gone, and nothing is ended
// without an order.
func TestModel(t *testing.T) {
	first, last := int64(1), int64(5000)
	if *seedFlag != 0 {
		first, last = *seedFlag, *seedFlag
	}
	for seed := first; seed <= last; seed++ {
		m := newModel(seed)
		if err := m.run(150); err != nil {
			t.Fatalf("-seed %d: %v\n%s", seed, err, m.tail())
		}
	}
}

func (m *model) tail() string {
	text := ""
	for _, line := range m.log[max(0, len(m.log)-40):] {
		text += "  " + line + "\n"
	}
	return text
}
