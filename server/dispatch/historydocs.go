package dispatch

import (
	"encoding/json"
	"sync"

	"github.com/stead-project/stead/proto/wire"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/spec"
)

// historyPart names what is to be sent of a history: what came after one change, up to another.
type historyPart struct {
	ref         spec.SetRef
	after, last records.ChangeID
}

// maxHistoryDocs bounds the sets of which something marshalled is kept.
const maxHistoryDocs = 4096

// historyDocs marshals what is sent of histories once for all sessions: of each set they mostly need
// the same.
type historyDocs struct {
	mu   sync.Mutex
	docs map[spec.SetRef]historyDoc
}

type historyDoc struct {
	part historyPart
	doc  []byte
}

func newHistoryDocs() *historyDocs { return &historyDocs{docs: map[spec.SetRef]historyDoc{}} }

// doc is a part of what v shows, marshalled for a node that knows differences, or as JSON.
func (h *historyDocs) doc(v cache.View, part historyPart, differences bool) ([]byte, error) {
	if !differences {
		return json.Marshal(part.read(v))
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if had, ok := h.docs[part.ref]; ok && had.part == part {
		return had.doc, nil
	}
	doc, err := wire.SetHistory(part.read(v))
	if err == nil {
		if len(h.docs) >= maxHistoryDocs {
			clear(h.docs)
		}
		h.docs[part.ref] = historyDoc{part, doc}
	}
	return doc, err
}

// read takes the part out of v.
func (p historyPart) read(v cache.View) *records.History {
	return &records.History{Ref: p.ref, Changes: records.NewestChanges(v.History(p.ref).Pages, p.after)}
}
