package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// condition is what one object is waited for, in kubectl's words.
type condition struct {
	gone    bool   // the object, or the life of a member, is to be gone
	kind    string // of a condition in status.conditions, as Ready; "": none
	path    string // a template of one path; "": none
	value   string // that the condition or path is to have; "" with a path: any
	written string // by the user
}

// parseCondition reads --for: delete, condition=NAME[=VALUE], jsonpath=PATH[=VALUE].
func parseCondition(text string) (w condition, err error) {
	w.written = text
	word, rest, _ := strings.Cut(text, "=")
	switch {
	case strings.EqualFold(word, "delete") && rest == "":
		w.gone = true
		return w, nil
	case word == "condition" && rest != "":
		w.kind, w.value, _ = strings.Cut(rest, "=")
		w.value = cmp.Or(w.value, "True")
		return w, nil
	case word == jsonPathForm && rest != "":
		path, value, valued := rest, "", false
		if end := strings.LastIndex(rest, "}"); end >= 0 { // an = below it belongs to the path
			path = rest[:end+1]
			value, valued = strings.CutPrefix(rest[end+1:], "=")
			if !valued && rest[end+1:] != "" {
				return w, misuse("invalid --for %q; write the value after '}='", text)
			}
		} else {
			path, value, valued = strings.Cut(rest, "=")
		}
		if valued && value == "" {
			return w, misuse("invalid --for %q; write a value after =, or leave = out to wait for any", text)
		}
		if w.path, err = onePath(path); err != nil {
			return w, misuse("--for: %w", err)
		}
		w.value = value
		return w, nil
	}
	return w, misuse("invalid --for %q; use %s, %s or %s (of sets), delete, condition=NAME[=VALUE] or jsonpath=PATH[=VALUE]",
		text, forAvailable, forReady, forDeleted)
}

// ofSet is the goal of a set that a condition means; "": none, it is looked for in the object.
func (w condition) ofSet() string {
	switch {
	case w.gone:
		return forDeleted
	case w.value == "True" && (strings.EqualFold(w.kind, forAvailable) || strings.EqualFold(w.kind, forReady)):
		return strings.ToLower(w.kind)
	}
	return ""
}

// met reports whether an object is as it is waited for. first is its uid when the wait began.
func (w condition) met(o *proto.Object, first string, hosts map[string]string) (bool, error) {
	if w.gone {
		m, err := decode[any, records.ShownMember](o)
		return err == nil && o.GetKind() == proto.KindMember && (m.Metadata.UID == "" || m.Metadata.UID != first), err
	}
	raw, err := (&printer{hosts: hosts}).document(o)
	if err != nil {
		return false, err
	}
	doc, err := readDocument(raw)
	if err != nil {
		return false, err
	}
	if w.path == "" {
		return w.inConditions(doc), nil
	}
	value, err := find(w.path, doc)
	if err != nil || value == nil {
		return false, err
	}
	return w.value == "" || fmt.Sprint(value) == w.value, nil
}

// inConditions looks for the condition in status.conditions; upper and lower case are the same, as
// for kubectl.
func (w condition) inConditions(doc any) bool {
	list, err := find("{.status.conditions}", doc)
	conditions, ok := list.([]any)
	if err != nil || !ok {
		return false
	}
	for _, c := range conditions {
		fields, _ := c.(map[string]any) // others have neither
		if strings.EqualFold(fmt.Sprint(fields["type"]), w.kind) {
			return strings.EqualFold(fmt.Sprint(fields["status"]), w.value)
		}
	}
	return false
}

// waiter waits for objects one after the other.
type waiter struct {
	*cli
	want  condition
	hosts map[string]string
	out   io.Writer
}

// object waits until one object is as wanted, and says so. It waits for a server that is away.
func (w *waiter) object(ctx context.Context, kind, word, name string) error {
	first := ""
	for {
		err := w.once(ctx, kind, name, &first)
		over := status.Code(err) == codes.DeadlineExceeded // the server's clock may be ahead of ours
		switch {
		case err == nil:
			fmt.Fprintf(w.out, "%s/%s condition met\n", word, name)
			return nil
		case over:
			return fmt.Errorf("wait for %s of %s/%s: %w", w.want.written, word, name, errNotInTime)
		case ctx.Err() != nil:
			return fmt.Errorf("wait for %s of %s/%s: %w", w.want.written, word, name, unfinished(ctx))
		case status.Code(err) != codes.Unavailable && !errors.Is(err, io.EOF): // EOF: the server ended the watch
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// once follows one watch until the object is as wanted, which is no error. first is the uid of the
// first life that was seen.
func (w *waiter) once(ctx context.Context, kind, name string, first *string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	list := &proto.ListRequest{Kind: kind, Namespace: w.namespace, Set: setOf(kind, name)}
	stream, err := w.control.Watch(ctx, list)
	if err != nil {
		return err
	}
	found := false
	for {
		ev, err := stream.Recv()
		switch {
		case err != nil:
			return err
		case ev.GetSynced() && !found && w.want.gone:
			return nil
		case ev.GetSynced() && !found:
			_, err := w.control.Get(ctx, &proto.GetRequest{Kind: kind, Namespace: w.namespace, Name: name})
			return cmp.Or(err, io.EOF) // it appeared meanwhile: once more
		case ev.GetSynced() || ev.GetObject().GetName() != name:
			continue
		case ev.GetGone() && w.want.gone:
			return nil
		case ev.GetGone():
			return fmt.Errorf("%s %s was deleted during the wait", kind, name)
		}
		o, err := decode[any, any](ev.GetObject())
		if err != nil {
			return err
		}
		found, *first = true, cmp.Or(*first, o.Metadata.UID)
		if done, err := w.want.met(ev.GetObject(), *first, w.hosts); done || err != nil {
			return err
		}
	}
}

// setOf is the set to which a watch of one object can be limited; "": none.
func setOf(kind, name string) string {
	switch kind {
	case proto.KindSet:
		return name
	case proto.KindMember:
		if set, _, err := spec.ParseMemberName(name); err == nil {
			return string(set)
		}
	}
	return ""
}
