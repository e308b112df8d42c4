package main

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
)

// shelf is a database that forgets, garbles and hides.
type shelf struct {
	held   map[string]string
	hidden map[string]bool
	turns  *int
}

func (s shelf) put(context.Context, string, string) error { return errors.New("not written to here") }
func (s shelf) next()                                     { *s.turns++ }

func (s shelf) get(_ context.Context, key string) (string, error) {
	if s.hidden[key] {
		return "", errors.New("nobody answers")
	}
	return s.held[key], nil
}

// What every proof with a database rests on: a key that was acknowledged and is not
// there, is another, or cannot be read is counted as what it is.
func TestALoadCountsWhatIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := shelf{held: map[string]string{}, hidden: map[string]bool{}, turns: new(int)}
		var acked []string
		for i := range 40 {
			key := fmt.Sprint("k", i)
			acked = append(acked, key)
			s.held[key] = key
		}
		delete(s.held, "k0")   // the first of the first share
		delete(s.held, "k39")  // the last of the last
		s.held["k11"] = "else" // within
		s.hidden["k25"] = true
		var sum result
		verifyAll(t.Context(), func(int) keys { return shelf{s.held, s.hidden, new(int)} }, acked, &sum)
		if sum.Lost != 3 || sum.Unreadable != 1 {
			t.Errorf("lost %d, unreadable %d; want 3 and 1", sum.Lost, sum.Unreadable)
		}
	})
}

func TestAReaderTurnsToAnotherMemberAndGivesUpInTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := shelf{held: map[string]string{}, hidden: map[string]bool{}, turns: new(int)}
		var acked []string
		for i := range 9 {
			key := fmt.Sprint("k", i)
			acked, s.hidden[key] = append(acked, key), true
		}
		var r result
		verify(t.Context(), s, acked, &r)
		if r.Unreadable != 4 || *s.turns < 4 {
			t.Errorf("unreadable %d after %d turns; want it to give up at 4, having turned", r.Unreadable, *s.turns)
		}
	})
}
