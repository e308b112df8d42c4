package audit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stead-project/stead/proto"
)

// entries are a source of some, and then err.
func entries(ctx context.Context, name string, err error, at ...int64) *source {
	return begin(ctx, name, func(send func(*proto.AuditEntry) error) error {
		for _, a := range at {
			e := &proto.AuditEntry{AtUnixNanos: a, Json: []byte(name)}
			if a == 0 {
				e = &proto.AuditEntry{Synced: true}
			}
			if err := send(e); err != nil {
				return err
			}
		}
		return err
	})
}

func told(all *[]string) func(*proto.AuditEntry) error {
	return func(e *proto.AuditEntry) error {
		*all = append(*all, fmt.Sprint(e.GetAtUnixNanos(), string(e.GetJson()), e.GetMissing()))
		return nil
	}
}

func TestEntriesOfAllServersComeInOrder(t *testing.T) {
	var got []string
	sources := []*source{
		entries(t.Context(), "", nil, 1, 4, 9),
		entries(t.Context(), "s2", nil, 2, 3, 8),
		entries(t.Context(), "s3", errors.New("it is away"), 5),
		entries(t.Context(), "s4", errors.New("so is it")),
	}
	if err := merge(sources, told(&got)); err != nil {
		t.Fatal(err)
	}
	if text := strings.Join(got, ", "); text != "0server s4: so is it, 1, 2s2, 3s2, 4, 5s3, 0server s3: it is away, 8s2, 9" {
		t.Errorf("got %s", text)
	}
}

// TestWhatComesOfAllServersIsFollowed: what is there is in order, what comes after it is not waited for; that a server is away is said once.
func TestWhatComesOfAllServersIsFollowed(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	sources := []*source{
		begin(ctx, "", func(send func(*proto.AuditEntry) error) error {
			_ = send(&proto.AuditEntry{Synced: true})
			<-ctx.Done()
			return ctx.Err()
		}),
		entries(ctx, "s2", errors.New("it is away"), 1, 0, 3),
		entries(ctx, "s3", nil, 2, 0, 4),
	}
	var got []string
	if err := merge(sources, told(&got)); err != nil || strings.Join(got, " ") != "1s2 2s3" {
		t.Fatalf("%v: there is %q", err, got)
	}
	got = nil
	err := follow(cancel, sources, func(e *proto.AuditEntry) error {
		if err := told(&got)(e); err != nil || len(got) < 3 {
			return err
		}
		return errors.New("enough")
	})
	slices.Sort(got)
	if err == nil || err.Error() != "enough" || strings.Join(got, " ") != "0server s2: it is away 3s2 4s3" {
		t.Errorf("%v: came %q", err, got)
	}
}
