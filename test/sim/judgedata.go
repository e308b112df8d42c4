package sim

import (
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/store"
)

// marked notes volumes on which a life was ready, and under which set first.
func (j *judge) marked(v cache.View, e store.Event) {
	rec, err := store.Decode[records.IdentityRecord](e.KV)
	if err != nil {
		j.w.fail("records", "%v", err)
		return
	}
	for claim, number := range rec.VolumeReady {
		if vol := v.Volume(rec.ID, claim); vol != nil && vol.Number == number && j.used[vol.UID] == "" {
			j.used[vol.UID] = rec.ReadyOnce
		}
	}
}

// firstStart judges that no life begins in a set that takes the start for its first while
// a volume is kept that an earlier set of the name used (SAFETY S19). A store that was
// restored may not know what a later one has marked.
func (j *judge) firstStart(v cache.View, m *records.Member) {
	if j.w.restores > 0 {
		return
	}
	for _, vol := range v.Volumes(m.ID.Ref()) {
		by := j.used[vol.UID]
		switch {
		case by == "" || by == m.SetUID || vol.Fate == records.FateReclaiming:
		case !v.Bootstrapped(m.SetUID):
			j.w.fail("data", "%s %s begins in a set that is not bootstrapped, and volume %s of %s holds data of the set before",
				m.ID, m.Token, vol.UID, vol.ID)
		default:
			j.w.count("life begun beside data of an earlier set")
		}
	}
}
