package step

import (
	"testing"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

func tok(n int64) spec.Token {
	if n == 0 {
		return spec.Token{}
	}
	return spec.Token{Epoch: 1, Number: n}
}

func TestChoose(t *testing.T) {
	type answer struct {
		token    int64
		standing Standing
		order    Order
	}
	run := func(n int64) Orders { return Orders{Token: tok(n), Goal: records.GoalRun} }
	stop := func(n int64) Orders { return Orders{Token: tok(n), Goal: records.GoalStop} }
	cases := []struct {
		name string
		m    Memory
		o    Orders
		told int64
		want answer
	}{
		{"nothing is known and nothing wanted", Memory{}, Orders{}, 0, answer{0, Closed, OrderNone}},
		{"a first life is fresh", Memory{}, run(5), 0, answer{5, Fresh, OrderRun}},
		{"a first life that is to stop", Memory{}, stop(5), 0, answer{5, Fresh, OrderStop}},
		{"an open life runs on by order", Memory{Newest: tok(5), Open: tok(5)}, run(5), 0, answer{5, Open, OrderRun}},
		{"an open life stops by order", Memory{Newest: tok(5), Open: tok(5)}, stop(5), 0, answer{5, Open, OrderStop}},
		{"absence is no order", Memory{Newest: tok(5), Open: tok(5)}, Orders{}, 0, answer{5, Open, OrderNone}},
		{"an older life wanted is no order for the open one", Memory{Newest: tok(5), Open: tok(5)}, stop(4), 0, answer{5, Open, OrderNone}},
		{"a newer life ends the open one first", Memory{Newest: tok(5), Open: tok(5)}, run(6), 0, answer{5, Open, OrderStop}},
		{"an open life said to be superseded ends", Memory{Newest: tok(5), Open: tok(5)}, Orders{Over: tok(5)}, 0, answer{5, Open, OrderStop}},
		{"an older life said to be superseded does not end the open one", Memory{Newest: tok(5), Open: tok(5)}, Orders{Over: tok(4)}, 0, answer{5, Open, OrderNone}},
		{"an end is told before a new life begins", Memory{Newest: tok(5), Ends: []spec.Token{tok(5)}}, run(6), 0, answer{5, Closed, OrderNone}},
		{"a told end does not hold up a new life", Memory{Newest: tok(5), Ends: []spec.Token{tok(5)}}, run(6), 5, answer{6, Fresh, OrderRun}},
		{"a closed token wanted again is closed", Memory{Newest: tok(5)}, run(5), 0, answer{5, Closed, OrderNone}},
		{"a closed token after which nothing is wanted is closed", Memory{Newest: tok(5)}, Orders{}, 0, answer{5, Closed, OrderNone}},
		{"a token older than the newest is spent", Memory{Newest: tok(5)}, run(4), 0, answer{4, Spent, OrderNone}},
		{"a higher epoch is newer than any number", Memory{Newest: tok(5)}, Orders{Token: spec.Token{Epoch: 0, Number: 9}, Goal: records.GoalRun}, 0, answer{-9, Spent, OrderNone}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			token, standing, order := Choose(c.m, c.o, func(t spec.Token) bool { return t == tok(c.told) })
			want := tok(c.want.token)
			if c.want.token < 0 {
				want = c.o.Token
			}
			if token != want || standing != c.want.standing || order != c.want.order {
				t.Errorf("got %v %v %q, want %+v", token, standing, order, c.want)
			}
		})
	}
}
