package dispatch

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
	"github.com/stead-project/stead/store"
)

// errLost is that of a stream that broke, errElse another end of its session.
var errLost, errElse = errors.New("the stream broke"), errors.New("it went on")

// kindOf names what a message tells.
func kindOf(m *proto.ToNode) string {
	switch {
	case m.GetWanted() != nil:
		return "wanted"
	case m.GetPictures() != nil:
		return "pictures"
	case m.GetFiles() != nil:
		return "files"
	case m.GetPong() != nil:
		return "pong"
	case m.GetStored() != nil:
		return "stored"
	case m.GetAsk() != nil:
		return "ask"
	}
	return ""
}

// A session whose stream breaks is over at once, whatever was on its way, at first or later:
// its node hears all in the next one.
func TestASessionWhoseStreamBreaksIsOver(t *testing.T) {
	said := func(h *hand) {
		h.se.out.addStored(spec.LifeID{ID: ident(0), Token: token(10)}, 1, false)
		h.se.out.addPong(pong{id: 1})
		h.se.out.addAsk(&proto.Ask{Id: "a"})
	}
	for _, kind := range []string{"wanted", "pictures", "files", "pong", "stored", "ask"} {
		for nth := 1; nth <= 2; nth++ {
			t.Run(fmt.Sprintf("%s the %d. time", kind, nth), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newStill(t)
					r.begin()
					h := r.hand(n1)
					r.server.snapshots.round(cache.Changes{All: true})
					h.se.sentRev = 1 << 60 // pongs wait for nothing
					said(h)
					seen := 0
					h.fail = func(m *proto.ToNode) error {
						if kindOf(m) != kind {
							return nil
						}
						seen++
						if seen < nth {
							return nil
						}
						h.se.cancel(errElse) // who goes on ends by this
						return errLost
					}
					over := make(chan error, 1)
					go func() { over <- h.se.run(handStream{h: h}) }()
					synctest.Wait()
					if nth > 1 { // all was told; more is to be
						said(h)
						synctest.Wait()
						r.Record(store.SecretKey("default", "pass"), records.SecretRecord{Meta: records.Meta{Namespace: "default", Name: "pass"}})
						r.Record(store.ConfigKey("default", "conf"), records.ConfigRecord{Meta: records.Meta{Namespace: "default", Name: "conf"}, Files: map[string]scalar.Bytes{"f": nil}})
						tpl := testTemplate()
						tpl.Spec.Volumes = []spec.VolumeMedia{{Name: "conf", ConfigMap: &spec.ConfigMapVolume{Name: "conf"}}}
						r.Record(store.RevisionKey(refDB, "r2"), records.Revision{Ref: refDB, SetUID: "u1", Hash: "r2", Number: 2, Template: tpl})
						m := testMember(1, 11, "n1", "uid1")
						m.Revision = "r2"
						r.Record(store.MemberKey(ident(1)), m)
						r.server.snapshots.round(cache.Changes{All: true})
						synctest.Wait()
					}
					if err := <-over; !errors.Is(err, errLost) {
						t.Errorf("got %v after %d of it", err, seen)
					}
				})
			})
		}
	}
}

// A pong that waited long enough goes on its own; when it is lost the session is over.
func TestAPongThatWaitedIsSentOrEndsTheSession(t *testing.T) {
	for name, lost := range map[string]bool{"it is sent": false, "it is lost": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newStill(t)
				h := r.hand(n1)
				r.server.snapshots.round(cache.Changes{All: true})
				var pongs []*proto.Pong
				h.fail = func(m *proto.ToNode) error {
					if m.GetPong() == nil {
						return nil
					}
					pongs = append(pongs, m.GetPong())
					if lost {
						h.se.cancel(errElse)
						return errLost
					}
					h.se.cancel(errElse) // enough was seen
					return nil
				}
				h.se.out.addPong(pong{id: 7, read: 1 << 60}) // the world never shows that
				want := errElse
				if lost {
					want = errLost
				}
				if err := h.se.run(handStream{h: h}); !errors.Is(err, want) || len(pongs) != 1 || pongs[0].GetId() != 7 || pongs[0].GetCurrent() {
					t.Errorf("got %v, pongs %v", err, pongs)
				}
			})
		})
	}
}

// What the store refused is tried again by itself.
func TestASessionTriesAgainWhatTheStoreRefused(t *testing.T) {
	stray := spec.LifeID{ID: ident(7), Token: token(7)}
	for name, c := range map[string]struct {
		say    func(*hand)
		stored func(*rig) bool
	}{
		"lives that the store does not know": {func(h *hand) { h.inventory(stray) }, func(r *rig) bool { return len(r.facts().Strays) == 1 }},
		"a word about a volume":              {func(h *hand) { h.say(false, trashed("a", "1")) }, func(r *rig) bool { return len(r.volumes()) == 1 }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newStill(t)
				r.known(1)
				h := r.hand(n1)
				r.server.snapshots.round(cache.Changes{All: true})
				over := make(chan error, 1)
				go func() { over <- h.se.run(handStream{h: h}) }()
				synctest.Wait()
				r.failCommits(store.ErrUnavailable, false)
				c.say(h)
				synctest.Wait()
				r.Store.Fail(nil)
				time.Sleep(2 * retryTime) // of the bubble
				synctest.Wait()
				if !c.stored(r) {
					t.Error("it is not stored")
				}
				h.se.cancel(errElse)
				if err := <-over; !errors.Is(err, errElse) {
					t.Errorf("it ended with %v", err)
				}
			})
		})
	}
}

// A session that ends before there are pictures of its time tells why.
func TestASessionThatEndsEarlySaysWhy(t *testing.T) {
	for name, c := range map[string]struct {
		cause error
		want  error
	}{
		"it is aborted":    {errSessionOver, errSessionOver},
		"the node hung up": {context.Canceled, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := newStill(t)
			h := r.hand(n1)
			h.se.cancel(c.cause)
			if err := h.se.run(handStream{h: h}); err != c.want || len(h.sent) != 0 {
				t.Errorf("got %v, told %v", err, h.sent)
			}
		})
	}
}
