package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/internal/backoff"
	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/server/audit"
	"github.com/stead-project/stead/spec/scalar"
)

// auditOptions choose entries.
type auditOptions struct {
	since             time.Duration
	who, verb, object string
	follow            bool
	format            string
}

func auditCommand(c *cli) *cobra.Command {
	var o auditOptions
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Show what was asked of the servers, by whom, and what came of it",
		Long: `Show the audit log of all servers: each change, each command in a member, log, forwarded port and
loaded image, each Secret that was read, each token and certificate, and what was refused; of
strangers each kind of refusal once a minute. It has names, and no content of objects. What lasts
has two entries, with the same CALL: one when it began, and one when it ended.

WHO is root, a client, a node or a server by its certificate; in brackets for whom root's program
says that it called, which is not proved. Times are by the clocks of the servers. Each server
keeps its entries on its disk (--audit-bytes, the oldest go first).`,
		Example: `  stead audit --since 1h
  stead audit -f --verb exec
  stead audit --since 0 --object default/db-password -o json`,
		Args: exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.format != "" && o.format != "json" {
				return misuse("-o %q: write json", o.format)
			}
			return c.audit(cmd, o)
		},
	}
	f := cmd.Flags()
	f.DurationVar(&o.since, "since", 24*time.Hour, "only what is newer than this (0: all that is kept)")
	f.StringVar(&o.who, "who", "", "only of those whose WHO has this in it, as ann")
	f.StringVar(&o.verb, "verb", "", "only this verb, as apply or exec")
	f.StringVar(&o.object, "object", "", "only what is about an object whose name has this in it, as \"set default/db\"")
	f.BoolVarP(&o.follow, "follow", "f", false, "continue with what comes")
	f.StringVarP(&o.format, "output", "o", "", "json: one object a line")
	return cmd
}

func (c *cli) audit(cmd *cobra.Command, o auditOptions) error {
	show := auditView{auditOptions: o, out: cmd.OutOrStdout(), errOut: cmd.ErrOrStderr(), table: newTable(cmd.OutOrStdout())}
	if o.format == "" {
		show.table = newTable(show.out, "TIME", "SERVER", "WHO", "FROM", "VERB", "OBJECTS", "RESULT", "CALL", "DETAIL")
	}
	r := &proto.AuditRequest{Follow: o.follow}
	if o.since > 0 {
		r.SinceUnixNanos = time.Now().Add(-o.since).UnixNano()
	}
	for {
		err := auditOnce(cmd.Context(), c, r, &show)
		if err := errors.Join(err, show.table.flush()); !o.follow || !show.synced || status.Code(err) != codes.Unavailable {
			return err
		}
		if !show.last.IsZero() {
			r.SinceUnixNanos = show.last.UnixNano() + 1
		}
		if !backoff.Sleep(cmd.Context(), againAfter) {
			return nil
		}
	}
}

// auditOnce shows what one call returns.
func auditOnce(ctx context.Context, c *cli, r *proto.AuditRequest, show *auditView) error {
	in, err := proto.NewAuditClient(c).Read(ctx, r)
	if err != nil {
		return err
	}
	for {
		e, err := in.Recv()
		if errors.Is(err, io.EOF) && show.missing {
			return errors.New("entries of other servers are missing")
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = show.entry(e)
		}
		if err != nil {
			return err
		}
	}
}

// auditView prints entries.
type auditView struct {
	auditOptions
	out, errOut io.Writer
	table       *table
	missing     bool      // entries of a server
	synced      bool      // the past was shown, aligned; what comes later is not
	last        time.Time // of what was shown
}

func (v *auditView) entry(e *proto.AuditEntry) error {
	switch {
	case e.GetMissing() != "":
		v.missing = true
		fmt.Fprintln(v.errOut, "stead: missing: "+scalar.Plain(e.GetMissing()))
		return nil
	case e.GetSynced():
		v.synced = true
		return v.table.flush()
	}
	var entry audit.Line
	if err := json.Unmarshal(e.GetJson(), &entry); err != nil {
		return nil // of a later version
	}
	v.last = entry.At
	if !v.wants(entry) {
		return nil
	}
	if v.format == "json" {
		fmt.Fprintln(v.out, string(e.GetJson()))
		return nil
	}
	v.table.row(auditRow(entry)...)
	if v.synced {
		return v.table.flush()
	}
	return nil
}

func (o *auditOptions) wants(e audit.Line) bool {
	return strings.Contains(auditWho(e), o.who) && (o.verb == "" || e.Verb == o.verb) &&
		(o.object == "" || strings.Contains(strings.Join(e.Objects, "\n"), o.object))
}

func auditRow(e audit.Line) []any {
	result := e.Code
	if e.Began {
		result = "began"
	}
	detail := e.Detail
	if e.Error != "" {
		detail = strings.TrimSpace(detail + " (" + e.Error + ")")
	}
	return []any{e.At.UTC().Format(time.RFC3339), e.Server, auditWho(e), e.From, e.Verb, strings.Join(e.Objects, ", "), result, e.Call, detail}
}

func auditWho(e audit.Line) string {
	if e.User != "" {
		return e.Who + " (" + e.User + ")"
	}
	return e.Who
}
