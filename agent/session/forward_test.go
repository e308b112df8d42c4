package session

import (
	"errors"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/stead-project/stead/proto"
)

func TestTheConnectionsThatANodeForwardsAreBounded(t *testing.T) {
	a := &Answerer{}
	a.forwards.Store(maxForwards)
	err := a.forward(t.Context(), nil, &proto.ForwardAsk{Port: 1})
	if !errors.Is(err, errManyForwards) || codeOf(err) != codes.ResourceExhausted {
		t.Errorf("got %v", err)
	}
	if n := a.forwards.Load(); n != maxForwards {
		t.Errorf("%d are counted afterwards, want %d", n, maxForwards)
	}
}
