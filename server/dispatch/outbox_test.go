package dispatch

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stead-project/stead/store"
)

func TestAPongWaitsAMomentForWhatIsToBeToldBeforeIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, c := range map[string]struct {
			pong    pong
			told    store.Rev
			after   time.Duration
			sent    bool
			current bool
			again   time.Duration
		}{
			"none was asked for":         {pong{}, 5, 0, false, false, 0},
			"all was told":               {pong{id: 7, read: 5}, 5, 0, true, true, 0},
			"more was told":              {pong{id: 7, read: 5}, 6, 0, true, true, 0},
			"something was not told":     {pong{id: 7, read: 5}, 4, 0, false, false, pongTime},
			"... and there is time":      {pong{id: 7, read: 5}, 4, pongTime - 1, false, false, 1},
			"... and the moment is over": {pong{id: 7, read: 5}, 4, pongTime, true, false, 0},
			"the store is held":          {pong{id: 7, read: 5, held: true}, 4, 0, true, false, 0},
		} {
			o := newOutbox()
			o.allowPongs()
			if c.pong.id != 0 {
				o.addPong(c.pong)
			}
			time.Sleep(c.after)
			out, again := o.take(c.told)
			if sent := len(out) == 1 && out[0].GetPong().GetId() == 7; sent != c.sent || len(out) > 1 || len(out) == 1 && !sent || again != c.again {
				t.Errorf("%s: sent %v, again in %s; want %v, %s", name, out, again, c.sent, c.again)
			} else if sent && out[0].GetPong().GetCurrent() != c.current {
				t.Errorf("%s: current %v", name, !c.current)
			}
			if out, again := o.take(c.told); c.sent && (len(out) > 0 || again != 0) {
				t.Errorf("%s: after it was sent: %v, again in %s", name, out, again)
			}
		}
	})
}
