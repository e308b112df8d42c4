package plan

import "testing"

func TestShrinkOrdered(t *testing.T) {
	check(t, []rule{
		{name: "the highest stops first", world: "ordered 1 n1 0:ready 1:ready 2:ready",
			want: "stop=2/ScaleDown | 2:Stopping 1:WaitingForSuccessor"},
		{name: "the next waits until the one above is gone", world: "ordered 1 n1 0:ready 1:ready 2:stopping",
			want: "| 2:Stopping 1:WaitingForSuccessor"},
		{name: "gone is forgotten and the next stops in one step", world: "ordered 1 n1 0:ready 1:ready 2:stopped",
			want: "forget=2+address stop=1/ScaleDown | 1:Stopping"},
		{name: "one that is over without an order is forgotten", world: "ordered 1 n1 0:ready 1:over",
			want: "forget=1+address |"},
		{name: "two broken surplus members go", world: "ordered 1 n1 0:ready 1:missing 2:missing",
			want: "stop=2/ScaleDown | 2:Stopping 1:WaitingForSuccessor"},
		{name: "an unready survivor holds the scale down", world: "ordered 2 n1 0:ready 1:running 2:ready 3:ready",
			want: "| 1:NotReady 2:WaitingForSurvivors 3:WaitingForSurvivors"},
		{name: "a missing survivor is made first", world: "ordered 2 n1 0:ready 2:ready",
			want: "start=1/Create@n1 | 1:Starting 2:WaitingForSurvivors"},
		{name: "what is gone is forgotten though survivors are unwell", world: "ordered 1 n1 0:running 1:stopped",
			want: "forget=1+address | 0:NotReady"},
		{name: "a scale to zero has no survivors", world: "ordered 0 n1 0:running 1:missing",
			want: "stop=1/ScaleToZero | 1:Stopping 0:WaitingForSuccessor"},
		{name: "silence is no proof that the one above is gone", world: "ordered 0 n1 n2~ 0:ready 1:stopping@n2",
			want: "| 1:NodeSilent 0:WaitingForSuccessor"},
		{name: "ordinals below the range are surplus, too", world: "ordered 1 start=1 n1 0:ready 1:ready",
			want: "stop=0/ScaleDown | 0:Stopping"},
		{name: "a kept volume keeps the address", world: "ordered 1 volumes n1 0:ready 1:stopped",
			want: "forget=1 |"},
	})
}

func TestShrinkParallel(t *testing.T) {
	check(t, []rule{
		{name: "all surplus members stop at once", world: "parallel 1 n1 0:ready 1:ready 2:running",
			want: "stop=2/ScaleDown stop=1/ScaleDown | 2:Stopping 1:Stopping"},
		{name: "unwell survivors hold nobody", world: "parallel 1 n1 0:missing 1:ready",
			want: "stop=1/ScaleDown | 0:ImageMissing 1:Stopping"},
	})
}

func TestRemove(t *testing.T) {
	check(t, []rule{
		{name: "a deleted set stops its highest member first", world: "ordered 3 deleting n1 0:ready 1:running 2:ready",
			want: "stop=2/Delete | 2:Stopping 1:WaitingForSuccessor 0:WaitingForSuccessor"},
		{name: "each after the one above is gone", world: "ordered 3 deleting n1 0:ready 1:running 2:stopped",
			want: "forget=2+address stop=1/Delete | 1:Stopping 0:WaitingForSuccessor"},
		{name: "Parallel stops all at once", world: "parallel 2 deleting n1 0:ready 1:missing",
			want: "stop=1/Delete stop=0/Delete | 1:Stopping 0:Stopping"},
		{name: "the last life is forgotten before the set goes", world: "ordered 3 deleting n1 0:stopped",
			want: "forget=0+address |"},
		{name: "the set goes last, its volumes stay", world: "ordered 3 deleting volumes n1 0:volume 1:none",
			want: "remove |"},
		{name: "a life that is silent keeps the set", world: "ordered 1 deleting n1~ 0:stopping",
			want: "| 0:NodeSilent"},
		{name: "nothing is created while deleting", world: "parallel 3 deleting n1 0:stopping",
			want: "| 0:Stopping"},
	})
}
