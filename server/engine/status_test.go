package engine

import (
	"testing"
	"time"

	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/store"
)

// Thirty starts in a row write the status with the first of them and once more when
// all is quiet; not thirty times.
func TestAStatusDoesNotRideWithEveryStart(t *testing.T) {
	inCluster(t, func(c *cluster) {
		_, stop := c.engine("a", c.store)
		defer stop()
		ctx := c.t.Context()
		w, err := c.store.Watch(ctx, store.StatusKey(db), c.set(30)-1)
		if err != nil {
			c.t.Fatal(err)
		}
		defer w.Close()
		c.until("ready and told", func(v cache.View) bool {
			s := v.Status(db)
			return ready(30)(v) && s != nil && s.ReadyReplicas == 30
		})
		time.Sleep(time.Minute) // of the bubble: everything is written
		b, err := w.Next(ctx)   // the whole history at once
		if err != nil {
			c.t.Fatal(err)
		}
		if len(b.Events) < 2 || len(b.Events) > 4 {
			c.t.Errorf("the status was written %d times", len(b.Events))
		}
	})
}
