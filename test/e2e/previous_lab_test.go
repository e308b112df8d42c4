package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/store/etcdembed"
	"github.com/stead-project/stead/test/judge"
)

// Versions that scripts/previous builds: the release before this one; and the commit by which servers can have a store of their
// own, for the release before knows no such servers.
const (
	previousVersion = "v0.1.0"
	ownStoreVersion = "v0.1.0-own-store"
)

// previousStead is the program of the previous release; without its commit the test is skipped.
func previousStead(t *testing.T, flags ...string) string {
	t.Helper()
	needRoot(t)
	build := exec.CommandContext(t.Context(), "../../scripts/previous", flags...)
	var told bytes.Buffer
	build.Stderr = &told
	out, err := build.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == 3 {
		t.Skip("the commit of an earlier version is not in this clone")
	}
	if err != nil {
		t.Fatalf("build an earlier version: %v\n%s", err, told.Bytes())
	}
	return strings.TrimSpace(string(out))
}

// dump is all that the server's store holds, by key; and the revision.
func (l *Lab) dump() (map[string]store.KV, int64) {
	l.t.Helper()
	file := l.path("dump.db")
	if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
		l.t.Fatal(err)
	}
	l.stead("backup", "save", file)
	all := map[string]store.KV{}
	st, err := etcdembed.Read(file, func(kv store.KV) error { all[kv.Key] = kv; return nil })
	if err != nil {
		l.t.Fatal(err)
	}
	return all, st.Rev
}

// changed are the keys that differ between two dumps, in order. Each session writes itself, its node's facts and the reports
// of its lives, and each leader itself and the chain: of these counts only what a report says of its life. A status is
// the one of before, for a member is not ready while its node's agent is between two sessions.
func changed(was, now map[string]store.KV) (keys []string) {
	all := maps.Clone(was)
	maps.Copy(all, now)
	for key := range all {
		a, b := was[key], now[key]
		kind, _ := store.Kind(key)
		switch kind {
		case store.KindSession, store.KindLeader, store.KindContinuity, store.KindKnown:
		case store.KindToken: // ends by itself
			if b.Mod != 0 && a.Mod != b.Mod {
				keys = append(keys, key)
			}
		case store.KindFacts:
			if a.Mod == 0 || b.Mod == 0 {
				keys = append(keys, key)
			}
		case store.KindStatus:
			if a.Create != b.Create || !bytes.Equal(a.Value, b.Value) {
				keys = append(keys, key)
			}
		case store.KindReport:
			if !bytes.Equal(ofLife(a), ofLife(b)) {
				keys = append(keys, key)
			}
		default:
			if a.Mod != b.Mod || a.Create != b.Create {
				keys = append(keys, key)
			}
		}
	}
	slices.Sort(keys)
	return keys
}

// ofLife is a report without what each session says anew.
func ofLife(kv store.KV) []byte {
	r, err := store.Decode[records.Report](kv)
	if err != nil {
		return kv.Value
	}
	r.Session, r.Seq, r.ReadyFor, r.At = 0, 0, 0, time.Time{}
	return store.Encode(r)
}

// generations is a cluster whose servers and agents are started with one program or the other.
type generations struct {
	t     *testing.T
	hosts []*Lab
	stand map[*Lab]map[string]stay // of each host's members
	store map[string]store.KV
}

// note remembers how members and store are.
func (g *generations) note(members ...string) {
	g.t.Helper()
	g.stand = map[*Lab]map[string]stay{}
	for _, name := range members {
		m := g.hosts[0].waitReady(name, nil)
		for _, h := range g.hosts {
			if h.nodeName() != m.Status.Node {
				continue
			}
			if g.stand[h] == nil {
				g.stand[h] = map[string]stay{}
			}
			maps.Copy(g.stand[h], h.stayOf(name))
		}
	}
	g.store, _ = g.hosts[0].dump()
}

// unchanged fails the test unless members and store are as they were noted.
func (g *generations) unchanged(what string) {
	g.t.Helper()
	for h, stand := range g.stand {
		h.assertStay(stand)
	}
	now, _ := g.hosts[0].dump()
	if keys := changed(g.store, now); len(keys) > 0 {
		for _, key := range keys {
			g.t.Logf("%s was, at %d, %s\nand is, at %d, %s", key, g.store[key].Mod, g.store[key].Value, now[key].Mod, now[key].Value)
		}
		judge.Broken(g.t, "%s wrote %q", what, keys)
	}
}

// server has the server run as that program.
func (g *generations) server(program, version string) {
	g.t.Helper()
	g.t.Log("the server is", version)
	l := g.hosts[0]
	end(g.t, l.server)
	l.program = program
	l.startServer("--listen", api)
	for _, h := range g.hosts {
		h.eventually(hanging, "the node has a session", func() error { return l.steadSays(h.nodeName()+" ", "get", "nodes") })
	}
}

// agents has all agents run as that program, one after the other, each with another name server.
func (g *generations) agents(program, version string) {
	g.t.Helper()
	for _, h := range g.hosts {
		g.t.Logf("the agent of %s is %s", h.Name, version)
		before := h.oneNameServer(0)
		end(g.t, h.agent)
		h.program = program
		h.startAgent()
		h.oneNameServer(before)
	}
}

// keepGolden copies, of what an agent keeps, the records, and all that the store holds, to a directory.
func (l *Lab) keepGolden(dir string) {
	l.t.Helper()
	kept, rev := l.dump()
	list := struct {
		Rev  int64
		Keys []golden
	}{Rev: rev}
	for _, key := range slices.Sorted(maps.Keys(kept)) {
		kv := kept[key]
		list.Keys = append(list.Keys, golden{key, string(kv.Value), int64(kv.Create), int64(kv.Mod), int64(kv.Lease)})
	}
	doc, err := json.MarshalIndent(list, "", "\t")
	if err != nil {
		l.t.Fatal(err)
	}
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "store.json"), append(doc, '\n'), 0o644)); err != nil {
		l.t.Fatal(err)
	}
	for _, part := range []string{"agent", "run/lives", "run/guard/lives"} {
		l.copyRecords(part, filepath.Join(dir, part))
	}
}

// golden is a key of the store as store.json has it.
type golden struct {
	Key, Value         string
	Create, Mod, Lease int64
}

// copyRecords copies the files of one of the lab's directories, but programs, logs and what members wrote.
func (l *Lab) copyRecords(from, to string) {
	l.t.Helper()
	err := filepath.WalkDir(l.path(from), func(path string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(l.path(from), path)
		if err != nil {
			return err
		}
		switch name := e.Name(); {
		case e.IsDir() && slices.Contains([]string{"bin", "logs", "data"}, name):
			return filepath.SkipDir
		case !e.Type().IsRegular():
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		place := filepath.Join(to, rel)
		return errors.Join(os.MkdirAll(filepath.Dir(place), 0o755), os.WriteFile(place, content, 0o644))
	})
	if err != nil {
		l.t.Fatal(err)
	}
}
