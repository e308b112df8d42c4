package box

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// readers reads what every member of the set db is shown, again and again, as the
// processes of a database would: all of them must see windows of one sequence, none
// may see it go back, and set.json names no event that is not in events.
type readers struct {
	*cluster
	mu    sync.Mutex
	lines map[records.ChangeID]string // whoever saw it, this is what stood there
	last  map[string]records.ChangeID // by file
	fresh map[string]string           // confirmed, by file
}

// newReaders reads until the test ends.
func newReaders(c *cluster) *readers {
	r := &readers{cluster: c, lines: map[records.ChangeID]string{}, last: map[string]records.ChangeID{}, fresh: map[string]string{}}
	c.later(func() {
		for {
			select {
			case <-c.ending:
				return
			case <-time.After(10 * time.Millisecond):
				r.round()
			}
		}
	})
	return r
}

// round reads all files once. The next boot of a node has files of its own.
func (r *readers) round() {
	dirs, _ := filepath.Glob(filepath.Join(r.dir, "*", "run", "*", "members", string(spec.DefaultNamespace), "*"))
	for _, dir := range dirs {
		r.read(dir)
	}
}

// read looks at set.json before events, which is written before it.
func (r *readers) read(dir string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var set struct{ Event records.ChangeID }
	if b, err := os.ReadFile(filepath.Join(dir, "set.json")); err == nil {
		if err := json.Unmarshal(b, &set); err != nil {
			r.t.Errorf("set.json: %v: %s", err, b)
		}
	}
	confirmed, _ := os.ReadFile(filepath.Join(dir, "confirmed"))
	b, err := os.ReadFile(filepath.Join(dir, "events"))
	if err != nil {
		return
	}
	member, err := os.ReadFile(filepath.Join(dir, "member.json"))
	var me struct{ Token string }
	if err != nil || json.Unmarshal(member, &me) != nil {
		return // it is being cleaned up
	}
	file := dir + " " + me.Token
	var before records.ChangeID
	for line := range bytes.Lines(b) {
		var c records.Change
		if err := json.Unmarshal(line, &c); err != nil {
			r.t.Errorf("%s: %v: %s", dir, err, line)
			return
		}
		id := c.ID()
		if was, known := r.lines[id]; known && was != string(line) {
			r.t.Errorf("event %d.%d is told in two ways:\n%s%s", id.Epoch, id.Number, was, line)
		}
		r.lines[id] = string(line)
		if id.Compare(before) <= 0 {
			r.t.Errorf("%s: event %v stands after %v", dir, id, before)
		}
		before = id
	}
	if before.Compare(r.last[file]) < 0 {
		r.t.Errorf("%s went back from event %v to %v", file, r.last[file], before)
	}
	if before.Compare(set.Event) < 0 {
		r.t.Errorf("%s: set.json includes event %v, events ends with %v", file, set.Event, before)
	}
	if now := fmt.Sprintf("%20s", bytes.TrimSpace(confirmed)); len(confirmed) > 0 && now < r.fresh[file] {
		r.t.Errorf("%s: confirmed went back from %s to %s", file, r.fresh[file], now)
	} else if len(confirmed) > 0 { // else it was cleaned up meanwhile
		r.fresh[file] = now
	}
	r.last[file] = before
}

// stored is the set's history in the store, and the names of its keys.
func (c *cluster) stored(set spec.SetName) []records.Change {
	_, kvs, err := c.store.Snapshot(c.t.Context(), store.KindHistory+"/"+string(spec.DefaultNamespace)+"/"+string(set)+"/")
	if err != nil {
		c.t.Fatal(err)
	}
	var pages []*records.HistoryPage
	for _, kv := range kvs {
		if strings.HasSuffix(kv.Key, store.HistoryBase) {
			continue
		}
		p, err := store.Decode[records.HistoryPage](kv)
		if err != nil {
			c.t.Fatal(err)
		}
		pages = append(pages, &p)
	}
	for i := range pages { // the keys are sorted as texts
		for j := range pages[:i] {
			if pages[i].Page < pages[j].Page {
				pages[i], pages[j] = pages[j], pages[i]
			}
		}
	}
	return records.NewestChanges(pages, records.ChangeID{})
}

// finish waits until every member that lives is shown all of it, and checks that
// what the history tells of the members adds up to what they are.
func (r *readers) finish(replicas int) {
	r.t.Helper()
	var all []records.Change
	r.until("the history tells that all are ready, and every member is shown it", func() bool {
		all = r.stored("db")
		var sum records.Recorded
		for i := range all {
			sum.Add(&all[i])
		}
		ready := 0
		for _, m := range sum.Members {
			if m.Ready {
				ready++
			}
		}
		if ready != replicas || replicas == 0 {
			return replicas == 0 && ready == 0
		}
		r.round()
		shown := 0
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, m := range r.members("db") {
			for file, last := range r.last {
				if strings.HasSuffix(file, "/"+m.Name+" "+m.Token) && last == records.LastChange(all) {
					shown++
				}
			}
		}
		return shown == replicas
	})
	seen := map[string]records.ChangeKind{} // by token: lives of one identity never share one, nor do those of two
	for i, c := range all {
		if i > 0 && c.Number != all[i-1].Number+1 {
			r.t.Errorf("number %d follows %d", c.Number, all[i-1].Number)
		}
		if c.Ordinal == records.NoOrdinal {
			continue
		}
		life := c.Member + " " + c.Token
		begins := c.Kind == records.ChangeJoined || c.Kind == records.ChangeReturned
		if was := seen[life]; begins != (was == "") && i > 0 && all[0].Number == 1 || was == records.ChangeLeft || was == c.Kind {
			r.t.Errorf("%s of %s after %q", c.Kind, life, was)
		}
		seen[life] = c.Kind
	}
}

func TestEveryMemberSeesOneHistoryOnEtcd(t *testing.T) {
	t.Parallel()
	c := newCluster(t, onEtcd(t), "a", "b")
	r := newReaders(c)
	c.apply(shape{name: "db", replicas: 3})
	c.ready("db", 3)
	c.scale("db", 5)
	c.ready("db", 5)
	c.nodes["a"].restart()
	c.current().crash()
	c.startServer()
	c.scale("db", 2)
	c.ready("db", 2)
	r.finish(2)
	told := ""
	for _, ch := range c.stored("db") {
		told += string(ch.Kind) + " " + ch.Member + " " + ch.Reason + "\n"
	}
	for _, want := range []string{"Joined db-0 Create", "Joined db-4 ScaleUp", "Left db-4 ScaleDown", "Left db-2 ScaleDown", "ReplicasChanged"} {
		if strings.Count(told, want) < 1 {
			t.Errorf("nobody was told %q:\n%s", want, told)
		}
	}
}
