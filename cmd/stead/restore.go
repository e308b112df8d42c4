package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
)

func restoreCommand(c *cli) *cobra.Command {
	var off []string
	var yes, show bool
	var output string
	cmd := &cobra.Command{
		Use:   "restore",
		Short: "Say that the store was restored from a backup, and see for which hosts that waits",
		Long: `Say that the store was restored from a backup: a server or host has noticed it (the store
is held), or you know it before they do. The store gets a new epoch, and members run on;
but nothing starts, stops, moves or is given up before every host has said what it runs:
those of the backup, those that servers remember, and those that say hello meanwhile.
Start all servers and agents first. What was changed after the backup was made is to be
applied again.

--status shows how it stands: what was noticed, and which hosts were heard.
--off says that hosts which are waited for are off for good: nothing waits for them any
more. What they run, and the store does not know, may then run twice: make sure that they
are off, and stay off.`,
		Example: `  stead restore
  stead restore --yes
  stead restore --status
  stead restore --status -o json
  stead restore --off host-c,host-d`,
		Args: exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case output != "" && output != "json":
				return usageError{fmt.Errorf("-o %q: write json", output)}
			case output != "" && !show:
				return usageError{errors.New("-o goes with --status")}
			case show && (yes || len(off) > 0):
				return usageError{errors.New("--status goes with neither --off nor --yes: it changes nothing")}
			}
			return c.with(func(control proto.ControlClient) error {
				if show {
					return restoreStatus(cmd, control, output)
				}
				return restore(cmd, control, off, yes)
			})
		},
	}
	cmd.Flags().BoolVar(&show, "status", false, "only show how it stands")
	cmd.Flags().StringSliceVar(&off, "off", nil, "hosts that are waited for, and are off for good")
	cmd.Flags().BoolVar(&yes, "yes", false, "do it without being asked")
	cmd.Flags().StringVarP(&output, "output", "o", "", "with --status: json (default: a table)")
	return cmd
}

// restore says what it means, asks, does it, and shows how it stands then.
func restore(cmd *cobra.Command, control proto.ControlClient, off []string, yes bool) error {
	out := cmd.OutOrStdout()
	ask := func(dry bool) (*proto.EditResponse, error) {
		ctx, cancel := call(cmd.Context()) // for each: a person may think for long
		defer cancel()
		return control.Restore(ctx, &proto.RestoreRequest{Off: off, DryRun: dry})
	}
	would, err := ask(true)
	if err != nil {
		return err
	}
	question := "Was the store restored from a backup?"
	if len(off) > 0 {
		question = "Are these hosts off for good?"
	}
	sayEffects(out, would.GetEffects())
	if err := confirm(cmd, question, yes); err != nil {
		return err
	}
	if _, err := ask(false); err != nil {
		return err
	}
	return restoreStatus(cmd, control, "")
}

func restoreStatus(cmd *cobra.Command, control proto.ControlClient, output string) error {
	st, raw, err := readRestore(cmd.Context(), control)
	if err != nil {
		return err
	}
	if output == "json" {
		return (&printer{out: cmd.OutOrStdout(), form: output}).document(raw)
	}
	return sayRestore(cmd.OutOrStdout(), st)
}

func readRestore(ctx context.Context, control proto.ControlClient) (st records.RestoreState, raw []byte, err error) {
	ctx, cancel := call(ctx)
	defer cancel()
	info, err := control.Info(ctx, &proto.InfoRequest{})
	if err != nil {
		return st, nil, err
	}
	raw = info.GetRestoreJson()
	if len(raw) == 0 {
		return st, nil, errors.New("the server is of an older version, which knows nothing of restores")
	}
	err = json.Unmarshal(raw, &st)
	return st, raw, err
}

// sayRestoreState says how it stands, and what does not happen for that.
func sayRestoreState(out io.Writer, st records.RestoreState) {
	heard, excused := 0, 0
	for _, n := range st.Nodes {
		switch n.State {
		case records.NodeHeard:
			heard++
		case records.NodeExcused:
			excused++
		}
	}
	counted := fmt.Sprintf("%d of %d nodes were heard", heard, len(st.Nodes))
	if excused > 0 {
		counted += fmt.Sprintf(", %d excused", excused)
	}
	declared := fmt.Sprintf("declared by %s at %s, epoch %d", st.By, st.At.Format(time.DateTime), st.Epoch)
	switch st.State {
	case records.RestoreHeld:
		fact(out, "restore", "the store went back, says %s: %s", st.By, st.Cause)
		fact(out, "", "It is HELD since %s: nothing starts, stops or moves, and nothing can be changed", st.At.Format(time.DateTime))
	case records.RestoreCounting:
		fact(out, "restore", "%s; %s", declared, counted)
		fact(out, "", "Nothing starts, stops or moves before all were")
	case records.RestoreComplete:
		fact(out, "restore", "complete (%s; %s)", declared, counted)
	default:
		fact(out, "restore", "the store was never restored (epoch %d)", st.Epoch)
	}
}

// sayRestore is the whole screen.
func sayRestore(out io.Writer, st records.RestoreState) error {
	sayRestoreState(out, st)
	if st.Next != "" {
		fact(out, "next", "%s", st.Next)
	}
	if len(st.Nodes) == 0 {
		return nil
	}
	fmt.Fprintln(out)
	t := newTable(out, "NODE", "STATE", "SESSION", "KNOWN FROM", "SINCE")
	for _, n := range st.Nodes {
		state, since := n.State, ""
		switch n.State {
		case records.NodeExcused:
			state += ": off, says " + n.Off
		case records.NodeWaited:
			since = age(st.At)
		}
		t.row(n.Name, state, yesNo(n.Connected), n.From, since)
	}
	return t.flush()
}

// sayRestoring tells in an overview what holds everything up; else nothing.
func sayRestoring(out io.Writer, info *proto.InfoResponse) {
	var st records.RestoreState
	if json.Unmarshal(info.GetRestoreJson(), &st) != nil || st.State != records.RestoreHeld && st.State != records.RestoreCounting {
		return
	}
	sayRestoreState(out, st)
	fact(out, "", "%s; see 'stead restore --status'", st.Next)
}
