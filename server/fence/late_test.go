package fence

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/store"
)

// TestAYesThatCameTooLate: the program says yes, but of a node that was heard of since it
// was asked, or to a server that leads no more, or after its time.
func TestAYesThatCameTooLate(t *testing.T) {
	for name, meanwhile := range map[string]func(s *stand, ctx context.Context){
		"the node is back": func(s *stand, _ context.Context) { s.back("n1") },
		"the node was back and is silent again": func(s *stand, _ context.Context) {
			s.put(store.FactsKey("n1"), records.NodeFacts{Name: "n1", UID: "uid-n1", Boot: "b2", Epoch: 1})
		},
		"a later life": func(s *stand, _ context.Context) {
			s.put(store.MemberKey(member(0)), records.Member{ID: member(0), Token: token(99), Node: "n1", NodeUID: "uid-n1"})
		},
		"another one leads": func(s *stand, _ context.Context) {
			s.commit(store.Del(store.LeaderKey))
			s.commit(store.Put(store.LeaderKey, []byte("s2")))
		},
		"another machine":        func(s *stand, _ context.Context) { s.put(store.NodeKey("n1"), records.Node{Name: "n1", UID: "other"}) },
		"the store was restored": func(s *stand, _ context.Context) { s.put(store.EpochKey, 2) },
	} {
		t.Run(name, func(t *testing.T) {
			in(t, nothing, func(s *stand) {
				asked := false
				s.says = func(ctx context.Context, _ *Case) error {
					if asked {
						return errors.New("once is enough")
					}
					asked = true
					meanwhile(s, ctx)
					return nil
				}
				s.lose("n1")
				if calls := s.after(DefaultAfter + time.Second); len(calls) == 0 {
					t.Fatal("not called")
				}
				if s.over() {
					t.Error("db-0 counts as over")
				}
			})
		})
	}
}
