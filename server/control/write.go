package control

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// waitTime bounds how long a call waits for its own write to be seen.
const waitTime = 5 * time.Second

// seen waits until the world shows rev, so that whoever wrote reads it back. A
// slow world is no error: the write stands.
func (s *shared) seen(ctx context.Context, rev store.Rev) {
	ctx, cancel := context.WithTimeout(ctx, waitTime)
	defer cancel()
	if err := s.cfg.Cache.Wait(ctx, rev); err != nil {
		s.cfg.Logger.Warn("write not seen yet", "err", err)
	}
}

// commit writes t unless the store is held; what names what is written, for people.
func (s *shared) commit(ctx context.Context, what string, t store.Txn) error {
	t.If = append(t.If, store.NotHeld())
	rev, err := s.cfg.Store.Commit(ctx, t)
	if errors.Is(err, store.ErrConflict) {
		if held := s.held(ctx); held != nil {
			return held
		}
	}
	if err != nil {
		return writeError(what, err)
	}
	s.seen(ctx, rev)
	return nil
}

// held refuses what would change something while the store is held; nil: it is not.
func (s *shared) held(ctx context.Context) error {
	_, kvs, err := s.cfg.Store.Get(ctx, store.HoldKey)
	if err != nil {
		return nil // the conflict is told instead
	}
	if hold := store.HoldIn(kvs); hold != nil {
		return precondition("%s", hold.Refusal())
	}
	return nil
}

// edits of one set that collide with another's are tried again so often.
const attempts = 5

// editSet reads a set, lets change alter it and writes it, guarded by what was
// read; when somebody else was faster it looks again. change tells whether there
// is anything to write.
func (s *shared) editSet(ctx context.Context, ref spec.SetRef, change func(*records.Set) (bool, error)) error {
	return editRecord(ctx, s, store.SetKey(ref), "set "+ref.String(), notFound(proto.KindSet, ref.Namespace, string(ref.Name)), change, nil)
}

// editRecord is editSet for any record; gone is the error when there is none. beside is what the transaction compares and writes
// besides, of the record as it was read at seen and will be; nil: nothing.
func editRecord[T any](ctx context.Context, s *shared, key, name string, gone error, change func(*T) (bool, error),
	beside func(ctx context.Context, seen store.Rev, now *T) (store.Txn, error)) error {
	for range attempts {
		_, kvs, err := s.cfg.Store.Get(ctx, key)
		if err != nil {
			return err
		}
		record, err := before[T](kvs[key])
		if err != nil {
			return err
		}
		if record == nil {
			return gone
		}
		write, err := change(record)
		if err != nil || !write {
			return err
		}
		var t store.Txn
		if beside != nil {
			if t, err = beside(ctx, kvs[key].Mod, record); err != nil {
				return err
			}
		}
		err = s.commit(ctx, name, store.Txn{
			If:   append(t.If, store.Seen(key, kvs[key].Mod)),
			Then: append(t.Then, store.Put(key, store.Encode(record))),
		})
		if !isConflict(err) {
			return err
		}
	}
	return writeError(name, store.ErrConflict)
}

// The kinds of errors that callers tell apart, one function each.

// invalid: the request cannot be carried out in any state.
func invalid(format string, args ...any) error { return withCode(codes.InvalidArgument, format, args) }

// precondition: what is stored does not allow it now.
func precondition(format string, args ...any) error {
	return withCode(codes.FailedPrecondition, format, args)
}

// absent: there is nothing of that name.
func absent(format string, args ...any) error { return withCode(codes.NotFound, format, args) }

// conflict: somebody else changed it meanwhile, and nothing was written.
func conflict(format string, args ...any) error { return withCode(codes.Aborted, format, args) }

// unavailable: it may succeed when it is tried again.
func unavailable(format string, args ...any) error { return withCode(codes.Unavailable, format, args) }

// internal: a record or an answer is not as it must be.
func internal(format string, args ...any) error { return withCode(codes.Internal, format, args) }

func withCode(code codes.Code, format string, args []any) error {
	return status.Errorf(code, format, args...)
}

func isConflict(err error) bool { return status.Code(err) == codes.Aborted }

func notFound(kind string, ns spec.Namespace, name string) error {
	if kind == proto.KindNode { // which has no namespace
		return absent("there is no node %s", name)
	}
	return absent("there is no %s %s in namespace %s", kind, name, ns)
}

// writeError says what became of a guarded write.
func writeError(what string, err error) error {
	switch {
	case errors.Is(err, store.ErrConflict):
		return conflict("%s changed meanwhile; nothing was written, try again", what)
	case errors.Is(err, store.ErrTooLarge):
		return invalid("request exceeds one transaction; nothing was written: apply it in parts of at most %d objects and %d bytes each",
			store.MaxOps, store.MaxBytes)
	case errors.Is(err, store.ErrUnknown):
		return unavailable("it is unknown whether %s was written; repeating the command is safe", what)
	}
	return err
}
