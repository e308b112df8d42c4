package control

import (
	"cmp"
	"context"
	"time"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/store"
)

// End implements proto.ControlServer. A store that was ended is held, so that no transaction of any server begins, ends or frees anything
// in it; and no restore makes it go on but one that names it as ended (SAFETY S8).
func (s cluster) End(ctx context.Context, r *proto.EndRequest) (*proto.EditResponse, error) {
	by := cmp.Or(user(ctx), "somebody")
	origin := s.origin()
	if origin == "" {
		return nil, precondition("the store does not say which one it is, so that it cannot be told from its copy; try again in a moment")
	}
	return s.carryOut(ctx, by, r.GetDryRun(), "what the end of the store is decided by", func(v cache.View) (decision, error) {
		return endDecision(v, origin, by, time.Now().UTC())
	})
}

// endDecision ends the store of v, which names itself origin; nothing is to be written where that was done.
func endDecision(v cache.View, origin, by string, at time.Time) (d decision, err error) {
	switch hold := v.Hold(); {
	case hold != nil && hold.Ended == origin:
		d.effects = []string{"the store was ended already, by " + hold.By}
		return d, nil
	case hold != nil:
		return d, precondition("%s", hold.Refusal())
	case v.Count().Open(v.Epoch()):
		return d, precondition("a restore is in progress: wait until 'stead restore --status' says that it is complete")
	}
	d.If = []store.Compare{store.NotHeld(), v.Seen(store.EpochKey), v.Seen(store.CountKey)}
	d.Then = []store.Op{store.Put(store.HoldKey, store.Encode(records.Hold{
		Cause: "it continues in another store, which is made of its last backup", By: by, At: at, Ended: origin,
	}))}
	d.said = "store ended"
	d.effects = []string{
		"members run on; from now on nothing is started, stopped, moved or changed by this store, whoever starts its servers again",
		"members with nodeLoss: Replace run on for their bound after the last server was stopped",
	}
	return d, nil
}

// mayDeclare refuses a restore of a store that was ended, unless that is what a person wants; and only then.
func mayDeclare(hold *records.Hold, origin string, ended bool) error {
	switch here := hold != nil && hold.Ended != "" && (hold.Ended == origin || origin == ""); {
	case here && !ended:
		return precondition("%s has ended this store: it continues in another one. Start the servers on that one. "+
			"If no server was ever started on it, 'stead restore --ended' makes this one continue", hold.By)
	case ended && !here:
		return precondition("this store was not ended; leave --ended out")
	}
	return nil
}

// origin is what the store calls itself; "": that is not known.
func (s cluster) origin() string {
	if s.cfg.Origin == nil {
		return ""
	}
	return s.cfg.Origin()
}
