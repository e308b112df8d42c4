package main

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"

	"github.com/stead-project/stead/proto"
)

// applied is a server that was asked to apply; it answers with answer.
type applied struct {
	proto.ControlClient
	answer *proto.ApplyResponse
	dry    []bool // of each request
	last   *proto.ApplyRequest
}

// Apply implements proto.ControlClient.
func (a *applied) Apply(_ context.Context, r *proto.ApplyRequest, _ ...grpc.CallOption) (*proto.ApplyResponse, error) {
	a.dry, a.last = append(a.dry, r.GetDryRun()), r
	return a.answer, nil
}

// TestAnOlderServerIsAskedForNothingThatItDoesNotKnow: it would apply all, and not only what -l chooses.
func TestAnOlderServerIsAskedForNothingThatItDoesNotKnow(t *testing.T) {
	for name, c := range map[string]struct {
		selector      string
		dryRun, prune bool
		chose         bool
		asked         []bool // dry runs or not
		fails         bool
	}{
		"a selector":                       {selector: "app=db", asked: []bool{true}, fails: true},
		"a prune":                          {prune: true, asked: []bool{true}, fails: true},
		"a dry run":                        {selector: "app=db", dryRun: true, asked: []bool{true}, fails: true},
		"neither":                          {asked: []bool{false}},
		"a selector of a server that does": {selector: "app=db", chose: true, asked: []bool{true, false}},
	} {
		t.Run(name, func(t *testing.T) {
			server := &applied{answer: &proto.ApplyResponse{Chose: c.chose}}
			a := applier{cli: &cli{control: server}, prune: c.prune, all: c.prune, manifests: manifests{files: []string{"testdata/tree/a.yaml"}}}
			a.request.Selector, a.request.DryRun = c.selector, c.dryRun
			cmd := &cobra.Command{}
			cmd.SetOut(io.Discard)
			err := a.check()
			if err == nil {
				_, err = a.send(cmd)
			}
			if errors.Is(err, errOlderServer) != c.fails || !c.fails && err != nil {
				t.Errorf("got %v", err)
			}
			if !slices.Equal(server.dry, c.asked) {
				t.Errorf("asked for dry runs %v, want %v", server.dry, c.asked)
			}
		})
	}
}

// TestWhatComesAfterTheDryRunIsNotPruned: a request says what was shown; where nothing was, it deletes nothing.
func TestWhatComesAfterTheDryRunIsNotPruned(t *testing.T) {
	for _, pruned := range [][]*proto.Applied{nil, {{Kind: "configmap", Namespace: "default", Name: "old"}}} {
		server := &applied{answer: &proto.ApplyResponse{Chose: true, Pruned: pruned}}
		a := applier{cli: &cli{control: server}, prune: true, all: true, manifests: manifests{files: []string{"testdata/tree/a.yaml"}}}
		cmd := &cobra.Command{}
		cmd.SetOut(io.Discard)
		err := a.check()
		if err == nil {
			_, err = a.send(cmd)
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := server.last.GetPrune(); (got == nil) != (pruned == nil) || pruned != nil && !slices.Equal(got.GetExpected(), []string{"configmap default/old"}) {
			t.Errorf("shown %v: asked to prune %v", pruned, got)
		}
	}
}
