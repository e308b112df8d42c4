package box

import (
	"slices"
	"testing"
)

func TestMembersStartOneAfterTheOther(t *testing.T) {
	t.Parallel()
	c := newCluster(t, inMemory(t), "a", "b")
	c.apply(shape{name: "db", replicas: 3})
	c.ready("db", 3)
	if got, want := order(c.audit.starts()), []string{"db-0", "db-1", "db-2"}; !slices.Equal(got, want) {
		t.Errorf("started %v, want %v", got, want)
	}
}
