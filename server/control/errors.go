package control

import (
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

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
