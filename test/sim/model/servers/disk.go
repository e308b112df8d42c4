package servers

import "fmt"

// keep remembers, for the judge, the data that is lost or overwritten.
func (x *server) keep() {
	if x.data.id != 0 && !x.back {
		x.newest = x.data
	}
}

// same: two have the same votes and writes, whatever is known to be confirmed.
func same(a, b data) bool {
	a.commit, b.commit = 0, 0
	return a == b
}

// diskMoves are what happens to processes and disks.
func (e *Explorer) diskMoves(s *State, h uint8, do func(string, func(*State, *server) bool)) {
	x := &s.srv[h]
	struck := e.bounds.Struck == 0 || e.bounds.Struck == h+1
	if x.up {
		if s.left.Crashes > 0 {
			do(fmt.Sprintf("h%d crashes", h), func(next *State, _ *server) bool {
				next.left.Crashes--
				next.ends(h)
				return true
			})
		}
		if s.left.Copies > 0 && struck {
			do(fmt.Sprintf("the disk of h%d is copied", h), func(next *State, x *server) bool {
				next.left.Copies--
				x.old = x.directory
				return true
			})
		}
		return
	}
	if x.data.id != 0 {
		for _, alone := range []bool{false, true} {
			if alone && !e.bounds.Alone {
				continue
			}
			what := ""
			next := *s
			what = e.start(&next, h, alone)
			if next != *s {
				do(what, func(to *State, _ *server) bool { *to = next; return true })
			}
		}
		if s.left.Losses > 0 && struck {
			do(fmt.Sprintf("h%d loses the store's data", h), func(next *State, x *server) bool {
				next.left.Losses--
				x.keep()
				x.data, x.back, x.unpacked = data{store: x.data.store}, false, false
				return true
			})
		}
	}
	if x.uid != 0 && s.left.Losses > 0 && struck && s.task.host != h {
		do(fmt.Sprintf("h%d loses its disk", h), func(next *State, x *server) bool {
			next.left.Losses--
			x.keep()
			x.directory, x.back, x.told = directory{}, false, [2][ids + 1]mark{}
			return true
		})
	}
	if x.old.uid != 0 && s.left.Putbacks > 0 {
		for _, all := range []bool{true, false} {
			do(fmt.Sprintf("h%d gets its old copy back (all of it: %v)", h, all), func(next *State, x *server) bool {
				next.left.Putbacks--
				x.keep()
				if all {
					x.directory, x.told = x.old, [2][ids + 1]mark{}
				} else {
					x.data = x.old.data
				}
				x.back = x.newest.id != x.data.id || !same(x.newest, x.data)
				return all || x.uid == x.old.uid
			})
		}
	}
}
