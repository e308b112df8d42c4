package agent

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stead-project/stead/agent/files"
	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/proto/wire"
	"github.com/stead-project/stead/records"
)

// changes are those of the set with the numbers from..to.
func changes(from, to int64) records.History {
	h := records.History{Ref: ref}
	for n := from; n <= to; n++ {
		h.Changes = append(h.Changes, records.Change{Epoch: 1, Number: n, Kind: records.ChangeReady, Member: fmt.Sprint("db-", n), Ordinal: int(n)})
	}
	return h
}

// withHistory adds histories to pictures.
func withHistory(m *proto.ToNode, told ...records.History) *proto.ToNode {
	docs, err := wire.Documents(told)
	if err != nil {
		panic(err)
	}
	m.GetPictures().HistoriesJson = docs
	return m
}

// file is what db-0 reads; "" when it is not there.
func (n *node) file(name string) string {
	n.t.Helper()
	time.Sleep(5 * time.Second) // of the bubble: files are written once a second at most
	b, err := os.ReadFile(filepath.Join(n.root, "run", string(n.boot), "members", "default", "db-0", name))
	if err != nil && !os.IsNotExist(err) {
		n.t.Fatal(err)
	}
	return string(b)
}

// wantEvents checks the numbers in events, and that set.json names one in it.
func (n *node) wantEvents(from, to, included int64) {
	n.t.Helper()
	lines := strings.Split(strings.TrimSuffix(n.file(files.EventsFile), "\n"), "\n")
	first, last := decode[records.Change](n.t, []byte(lines[0])), decode[records.Change](n.t, []byte(lines[len(lines)-1]))
	if first.Number != from || last.Number != to || int64(len(lines)) != to-from+1 {
		n.t.Fatalf("events are %d to %d in %d lines, want %d to %d", first.Number, last.Number, len(lines), from, to)
	}
	set := decode[struct{ Event records.ChangeID }](n.t, []byte(n.file(files.SetFile)))
	if set.Event.Number != included {
		n.t.Fatalf("set.json includes event %d, want %d", set.Event.Number, included)
	}
}

func told(p records.Snapshot, number int64) records.Snapshot {
	p.Told = records.ChangeID{Epoch: 1, Number: number}
	return p
}

func TestMembersFollowTheHistoryOfTheirSet(t *testing.T) {
	box(t, func(t *testing.T, n *node) {
		n.script.say(withHistory(pictures(10, true, told(picture(10, 1), 2)), changes(1, 2)))
		n.script.say(wanted(10, n.life(5, records.GoalRun)))
		n.wantReady(tok(5))
		n.wantEvents(1, 2, 2)
		n.script.say(withHistory(pictures(11, false), changes(3, 3))) // the picture that includes it comes later
		n.wantEvents(1, 3, 2)
		n.script.say(withHistory(pictures(12, false, told(picture(12, 1), 5)), changes(4, 5)))
		n.wantEvents(1, 5, 5)
		n.kill()
		n.script.always(withHistory(pictures(9, true, told(picture(9, 1), 1)), changes(1, 1))) // of a server that lags
		n.run()
		n.wantEvents(1, 5, 5)
		n.kill()
		n.script.always() // nobody tells anything more
		must(t, os.RemoveAll(filepath.Join(n.root, "run", string(n.boot), "members", "default", "db-0", files.EventsFile)))
		n.run()
		n.wantEvents(1, 5, 5)
		n.script.say(withHistory(pictures(20, true, told(picture(20, 1), 300)), changes(2, 300)))
		n.wantEvents(300-records.HistoryWindow+1, 300, 300)
		n.script.say(withHistory(pictures(21, false, told(picture(21, 1), 400)), changes(400, 400))) // this node was away
		lines := strings.Split(strings.TrimSuffix(n.file(files.EventsFile), "\n"), "\n")
		if len(lines) != records.HistoryWindow || !strings.Contains(lines[len(lines)-2], `"number":300,`) || !strings.Contains(lines[len(lines)-1], `"number":400,`) {
			t.Errorf("the gap is not to be seen: %d lines, the last two are\n%s", len(lines), strings.Join(lines[len(lines)-2:], "\n"))
		}
	})
}

func TestWhatMembersSeeIsConfirmedFromTheMomentOfThePing(t *testing.T) {
	boxOf(t, time.Second, func(t *testing.T, n *node) {
		n.script.say(wanted(10, n.life(5, records.GoalRun)))
		n.wantReady(tok(5))
		confirmed := func() time.Duration {
			var u files.Uptime
			must(t, u.UnmarshalJSON([]byte(strings.TrimSpace(n.file(files.ConfirmedFile)))))
			return time.Duration(u)
		}
		clock := func() time.Duration { return time.Since(n.begun) }
		const ttl, ping = time.Second, 200 * time.Millisecond // those of the script
		if got := confirmed() - clock(); got > ttl || got < ttl-ping-10*time.Millisecond {
			t.Errorf("confirmed for %v more; want the TTL from the last ping", got)
		}
		var set struct{ ConfirmedUntil files.Uptime }
		must(t, json.Unmarshal([]byte(n.file(files.SetFile)), &set))
		if until := time.Duration(set.ConfirmedUntil); until > clock()+ttl {
			t.Errorf("set.json is confirmed until %v, now is %v", until, clock())
		}
		n.script.with(func() { n.script.behind = true })
		before := confirmed()
		if got := confirmed(); got != before {
			t.Errorf("a server that is behind confirmed until %v, after %v", got, before)
		}
		n.script.with(func() { n.script.behind = false })
		if got := confirmed(); got <= before {
			t.Errorf("confirmed until %v is not moved on from %v", got, before)
		}
		n.script.with(func() { n.script.mute = true })
		before = confirmed()
		n.kill()
		n.run()
		if got := confirmed(); got != before || got >= clock() {
			t.Errorf("confirmed until %v by an agent that heard nothing; before %v, now %v", got, before, clock())
		}
	})
}
