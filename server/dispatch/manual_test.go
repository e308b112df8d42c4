package dispatch

import (
	"context"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/proto/wire"
	"github.com/stead-project/stead/records"
)

// hand is a session that a test works by hand: it tells what there is when the test says so.
// Pictures are drawn by the rig's server, whenever it comes to it.
type hand struct {
	*ManualSession
	r    *rig
	sent []*proto.ToNode
	fail func(*proto.ToNode) error // what becomes of a message; nil: none is lost
}

// handStream is the way to the node.
type handStream struct {
	proto.Nodes_SessionServer
	h *hand
}

func (s handStream) Send(m *proto.ToNode) error {
	if s.h.fail != nil {
		if err := s.h.fail(m); err != nil {
			return err
		}
	}
	s.h.sent = append(s.h.sent, m)
	return nil
}

// hand begins a session; nothing is told yet.
func (r *rig) hand(h hello) *hand {
	r.t.Helper()
	n := &hand{r: r}
	desk, _, err := r.server.ManualSession(r.t.Context(), h.message(), handStream{h: n})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(desk.Close)
	n.ManualSession = desk
	return n
}

// told is what the session told at once, by kind; nil: nothing of that kind.
type toldNow struct {
	wanted   *proto.Wanted
	pictures *proto.Pictures
	files    *proto.FilesUpdate
}

// tells has the session tell what differs, with a world that shows all that is stored.
func (h *hand) tells() (now toldNow) {
	h.r.t.Helper()
	h.r.catchUp()
	h.sent = nil
	if err := h.Send(); err != nil {
		h.r.t.Fatalf("the session ended: %v", err)
	}
	for _, m := range h.sent {
		switch {
		case m.GetWanted() != nil:
			now.wanted = m.GetWanted()
		case m.GetPictures() != nil:
			now.pictures = m.GetPictures()
		case m.GetFiles() != nil:
			now.files = m.GetFiles()
		}
	}
	return now
}

// lives are those that are told now.
func (h *hand) lives() []records.Life {
	h.r.t.Helper()
	lives, err := wire.ToDocuments[records.Life](h.tells().wanted.GetLivesJson())
	if err != nil {
		h.r.t.Fatal(err)
	}
	return lives
}

// say has the node speak of volumes.
func (h *hand) say(full bool, reports ...records.VolumeReport) {
	h.r.t.Helper()
	docs, err := wire.Documents(reports)
	if err != nil {
		h.r.t.Fatal(err)
	}
	h.Receive(&proto.FromNode{Kind: &proto.FromNode_Volumes{Volumes: &proto.VolumeReports{Full: full, ReportsJson: docs}}})
}

// catchUp waits until the world shows all that is stored.
func (r *rig) catchUp() {
	r.t.Helper()
	rev, _, err := r.Store.Get(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	if err := r.Cache.Wait(ctx, rev); err != nil {
		r.t.Fatal(err)
	}
}

// orders are those about volumes that are told now.
func (h *hand) orders() []records.VolumeOrder {
	h.r.t.Helper()
	orders, err := wire.ToDocuments[records.VolumeOrder](h.tells().wanted.GetVolumesJson())
	if err != nil {
		h.r.t.Fatal(err)
	}
	return orders
}
