package control

import (
	"bufio"

	"github.com/stead-project/stead/proto"
)

// backupPart is the size of one message of a backup.
const backupPart = 256 << 10

// Backup implements proto.ControlServer.
func (s *Server) Backup(_ *proto.BackupRequest, stream proto.Control_BackupServer) error {
	if s.cfg.Backup == nil {
		return precondition("the store is an external %s: back it up there, with 'etcdctl snapshot save FILE'", s.cfg.About.GetStore())
	}
	w := bufio.NewWriterSize(parts{stream}, backupPart)
	if err := s.cfg.Backup(stream.Context(), w); err != nil {
		return err
	}
	return w.Flush()
}

// parts sends what is written.
type parts struct{ stream proto.Control_BackupServer }

func (p parts) Write(b []byte) (int, error) {
	if err := p.stream.Send(&proto.BackupPart{Data: b}); err != nil {
		return 0, err
	}
	return len(b), nil
}
