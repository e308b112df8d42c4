package plan

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/stead-project/stead/spec"
)

// dumped is a World as JSON: its fields, but those that JSON cannot have are written otherwise.
type dumped struct {
	World
	VolumeID *struct{} `json:",omitempty"` // a function; ReadWorld counts instead
	Rest     []restFor
	MoveRest []moveRestFor
	Outages  []outageFor
}

// restFor is an entry of World.Rest.
type restFor struct {
	ID  spec.Identity
	For time.Duration
}

// moveRestFor is an entry of World.MoveRest.
type moveRestFor struct {
	ID spec.Identity
	MoveRest
}

// outageFor is an entry of World.Outages.
type outageFor struct {
	Outage Outage
	For    time.Duration
}

// Dump writes w as one line of JSON, for ReadWorld: a world in which something was decided
// wrongly becomes a test. It holds the whole template, and the content of no Secret or
// ConfigMap, which the planner never sees.
func (w World) Dump() ([]byte, error) {
	d := dumped{World: w}
	for id, left := range w.Rest {
		d.Rest = append(d.Rest, restFor{id, left})
	}
	for id, left := range w.MoveRest {
		d.MoveRest = append(d.MoveRest, moveRestFor{id, left})
	}
	for o, since := range w.Outages {
		d.Outages = append(d.Outages, outageFor{o, since})
	}
	line, err := json.Marshal(d)
	if err != nil {
		return nil, fmt.Errorf("dump the world of a set: %w", err)
	}
	return line, nil
}

// ReadWorld reads what Dump wrote. Next decides in it what it decided then, but for the ids
// of new volumes, which are counted from 1.
func ReadWorld(line []byte) (World, error) {
	var d dumped
	if err := json.Unmarshal(line, &d); err != nil {
		return World{}, fmt.Errorf("read the world of a set: %w", err)
	}
	w := d.World
	w.Rest, w.Outages = map[spec.Identity]time.Duration{}, map[Outage]time.Duration{}
	for _, r := range d.Rest {
		w.Rest[r.ID] = r.For
	}
	w.MoveRest = map[spec.Identity]MoveRest{}
	for _, r := range d.MoveRest {
		w.MoveRest[r.ID] = r.MoveRest
	}
	for _, o := range d.Outages {
		w.Outages[o.Outage] = o.For
	}
	w.VolumeID = countIDs("volume-")
	return w, nil
}
