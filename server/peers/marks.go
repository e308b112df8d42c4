package peers

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"sync"
	"time"

	"github.com/stead-project/stead/internal/durable"
	"github.com/stead-project/stead/internal/trouble"
	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records/stores"
	"github.com/stead-project/stead/server/access"
	"github.com/stead-project/stead/server/quorum"
)

// markEvery is how often a server notes how far the members of the store have come.
const markEvery = 5 * time.Second

// marks is what a server knows of the members of the store, beside the store, and keeps: should the data of one be set back,
// that is noticed (SAFETY S8).
type marks struct {
	// Marks are by the ids of members.
	Marks map[string]stores.Mark `json:"marks"`
	// Servers are the addresses of all servers, which are asked at a start.
	Servers []string `json:"servers"`
}

func marksPath(dir string) string { return filepath.Join(dir, "members.json") }

func loadMarks(dir string) (m marks, err error) {
	if err = durable.GetJSON(marksPath(dir), &m); errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if m.Marks == nil {
		m.Marks = map[string]stores.Mark{}
	}
	return m, err
}

// noted are the marks of a running server.
type noted struct {
	mu   sync.Mutex
	kept marks
	last map[string]stores.Mark // what was seen last, to be kept with the next look
}

// Run notes how far the members of the store have come, until ctx ends. What was seen is kept with the next look only: a
// member applies a write a moment before it is in its own log.
func (s *Service) Run(ctx context.Context) error {
	if s.cfg.Members == nil || s.cfg.Dir == "" {
		<-ctx.Done()
		return nil
	}
	kept, err := loadMarks(s.cfg.Dir)
	if err != nil {
		return err
	}
	s.noted.mu.Lock()
	s.noted.kept = kept
	s.noted.mu.Unlock()
	var last trouble.Last
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(markEvery):
		}
		if err := s.note(s.seenNow(ctx)); err != nil && last.Is(err.Error()) {
			s.cfg.Logger.Warn("how far the members of the store have come not kept", "err", err)
		}
	}
}

// seenNow asks all members that this server knows of, and lists their servers' addresses.
func (s *Service) seenNow(ctx context.Context) (now map[string]stores.Mark, servers []string) {
	v := s.inside()
	s.ask(ctx, &v)
	now = map[string]stores.Mark{}
	for id, h := range v.health {
		if h != nil && (h.GetMember() == "" || h.GetMember() == id) {
			now[id] = stores.Mark{Term: h.GetTerm(), Index: h.GetIndex()}
		}
	}
	for _, m := range v.members {
		if m.ID != s.cfg.Members.Self() {
			servers = append(servers, v.known[m.Name].Addresses...)
		}
	}
	return now, servers
}

// note keeps what was seen at the last look, and remembers now for the next one.
func (s *Service) note(now map[string]stores.Mark, servers []string) error {
	s.noted.mu.Lock()
	defer s.noted.mu.Unlock()
	next := marks{Marks: quorum.Noted(s.noted.kept.Marks, s.noted.last, now, s.cfg.Members.Known()), Servers: servers}
	s.noted.last = now
	if maps.Equal(next.Marks, s.noted.kept.Marks) && len(servers) == len(s.noted.kept.Servers) {
		return nil
	}
	if err := durable.PutJSON(marksPath(s.cfg.Dir), next); err != nil {
		return err
	}
	s.noted.kept = next
	return nil
}

// Seen implements proto.ServersServer.
func (s *Service) Seen(_ context.Context, r *proto.SeenRequest) (*proto.SeenResponse, error) {
	s.noted.mu.Lock()
	defer s.noted.mu.Unlock()
	m := s.noted.kept.Marks[r.GetMember()]
	out := &proto.SeenResponse{Term: m.Term, Index: m.Index}
	if s.cfg.Members != nil {
		acked := s.cfg.Members.Acked(r.GetMember())
		out.AckedTerm, out.AckedIndex = acked.Term, acked.Index
		out.Removed = s.cfg.Members.Removed(r.GetMember())
	}
	return out, nil
}

// Check fails when a member of the store was removed, and when its data, whose log is at have, went back: by what its server kept in dir, by what those
// of the other servers that answer have seen, and by what it has acknowledged to the one that leads. Servers are more of their addresses.
func Check(ctx context.Context, a *access.Authority, dir, server, member string, have stores.Mark, servers []string) error {
	kept, err := loadMarks(dir)
	if err != nil {
		return err
	}
	was := kept.Marks[member]
	var acked []stores.Mark
	removed := false
	var group sync.WaitGroup
	var mu sync.Mutex
	for _, address := range append(servers, kept.Servers...) {
		group.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, reachTime)
			defer cancel()
			conn, err := a.Connect(ctx, []string{address})
			if err != nil {
				return // it does not run, and nothing can be asked
			}
			defer conn.Close()
			seen, err := proto.NewServersClient(conn).Seen(ctx, &proto.SeenRequest{Member: member})
			if err != nil {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			was = was.Or(stores.Mark{Term: seen.GetTerm(), Index: seen.GetIndex()})
			removed = removed || seen.GetRemoved()
			acked = append(acked, stores.Mark{Term: seen.GetAckedTerm(), Index: seen.GetAckedIndex()})
		})
	}
	group.Wait()
	if removed { // what it had acknowledged is kept no more: old data of it would not be noticed
		return stores.ErrRemoved
	}
	if a.Retired() {
		return fmt.Errorf("%w: run 'stead server replace %s' on another server, move the data directory away, and join with the token that is printed", access.ErrRetired, server)
	}
	if why := quorum.SetBack(server, have, was, acked); why != "" {
		return errors.New(why)
	}
	return nil
}
