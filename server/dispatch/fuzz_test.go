package dispatch

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protodelim"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/proto/wire"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/store"
)

// storedBytes bounds what a node may make the store hold in one of the fuzzer's sessions.
const storedBytes = 1 << 20

// FuzzSession gives any words as those of the node n1, which has a life of db-0. Nothing
// panics, another node's session is answered still, nothing is stored that is about another
// node, its member or its volume (SAFETY S21), and not without a bound.
func FuzzSession(f *testing.F) {
	id := func(ordinal int) *proto.Identity { return wire.Identity(ident(ordinal)) }
	say := func(words ...*proto.FromNode) {
		var b bytes.Buffer
		for _, w := range words {
			if _, err := protodelim.MarshalTo(&b, w); err != nil {
				f.Fatal(err)
			}
		}
		f.Add(b.Bytes())
	}
	reports := func(ordinal int) *proto.FromNode {
		docs, err := wire.Documents([]records.Report{{
			ID: ident(ordinal), Token: token(10), Node: "n1", Seq: 3, Phase: records.PhaseRunning, Ready: true, Cause: "X", Message: "y",
			Containers: []records.ContainerReport{{Name: "main", State: "Running"}},
		}})
		if err != nil {
			f.Fatal(err)
		}
		return &proto.FromNode{Kind: &proto.FromNode_Reports{Reports: &proto.Reports{ReportsJson: docs}}}
	}
	volumes := func(ordinal int, full bool) *proto.FromNode {
		docs, err := wire.Documents([]records.VolumeReport{{
			ID: ident(ordinal), Claim: "data", Volume: "v", Number: 1, Class: "local", Node: "n2", State: records.VolumeTrashed,
		}})
		if err != nil {
			f.Fatal(err)
		}
		return &proto.FromNode{Kind: &proto.FromNode_Volumes{Volumes: &proto.VolumeReports{Full: full, ReportsJson: docs}}}
	}
	ping := &proto.FromNode{Kind: &proto.FromNode_Ping{Ping: &proto.Ping{Id: 7}}}
	inventory := &proto.FromNode{Kind: &proto.FromNode_Inventory{Inventory: &proto.Inventory{Holdings: []*proto.Holding{
		{Id: id(0), Token: wire.Token(token(10))}, {Id: id(2), Token: wire.Token(token(99))},
	}}}}
	again := &proto.FromNode{Kind: &proto.FromNode_Hello{Hello: &proto.Hello{Node: "n2", Uid: "uid2", Boot: "b2", FactsJson: []byte("{}")}}}
	say(reports(0), ping)
	say(reports(2), volumes(2, true))
	say(volumes(0, false), inventory)
	say(inventory, again, ping)

	f.Fuzz(func(t *testing.T, words []byte) {
		r := newRig(t)
		r.begin()
		r.live(2, 20, "n2", "uid2")
		r.Record(store.VolumeKey(ident(2), "data"), records.Volume{ID: ident(2), Claim: "data", UID: "v", Number: 1, Class: "local", Node: "n2", Fate: records.FateReclaiming})
		other := r.connect(hello{node: "n2", uid: "uid2", boot: "b2", cluster: "c1"})
		other.welcome()
		other.wanted()
		before := r.all()

		liar := r.connect(n1)
		liar.welcome()
		in := bytes.NewReader(words)
		for {
			var m proto.FromNode
			if err := protodelim.UnmarshalFrom(in, &m); err != nil {
				if err == io.EOF || in.Len() == 0 {
					break
				}
				continue
			}
			if liar.stream.Send(&m) != nil {
				break
			}
		}
		// It was all read, and stored what is to be, when this is; or the stream has ended.
		last := store.VolumeReportKey(ident(0), "data", "last")
		docs, err := wire.Documents([]records.VolumeReport{{ID: ident(0), Claim: "data", Volume: "last", State: records.VolumeTrashed}})
		if err != nil {
			t.Fatal(err)
		}
		_ = liar.stream.Send(&proto.FromNode{Kind: &proto.FromNode_Volumes{Volumes: &proto.VolumeReports{ReportsJson: docs}}})
		r.until("all was read", func() bool {
			for {
				select {
				case <-liar.msgs:
				case <-liar.end:
					return true
				default:
					_, stored := r.Get(last)
					return stored
				}
			}
		})
		other.ping(2)
		other.pong()
		grown := 0
		after := r.all()
		for key, value := range before {
			if got := after[key]; !bytes.Equal(got, value) && !strings.HasSuffix(key, "/n1") && key != store.ReportKey(ident(0)) && key != store.HellosKey {
				t.Errorf("%s became %q", key, got)
			}
		}
		for key, value := range after {
			grown += len(value) - len(before[key])
			mine := strings.HasSuffix(key, "/n1") || key == store.ReportKey(ident(0)) || strings.HasPrefix(key, store.KindVolumeReport+"/") && !strings.HasSuffix(key, "/2/v")
			if _, was := before[key]; !was && !mine {
				t.Errorf("%s was stored", key)
			}
		}
		if grown > storedBytes {
			t.Errorf("%d bytes were stored", grown)
		}
	})
}

// all is what the store holds.
func (r *rig) all() map[string][]byte {
	r.t.Helper()
	_, kvs, err := r.Store.Snapshot(context.WithoutCancel(r.t.Context()), "")
	if err != nil {
		r.t.Fatal(err)
	}
	out := map[string][]byte{}
	for _, kv := range kvs {
		out[kv.Key] = kv.Value
	}
	return out
}
