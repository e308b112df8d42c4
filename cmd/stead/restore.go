package main

import (
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
	var yes, show, ended bool
	var output string
	cmd := &cobra.Command{
		Use:   "restore",
		Short: "Declare that the store was restored from a backup, and show which nodes it waits for",
		Long: `Declare that the store was restored from a backup. Use it when a server or node has
noticed a restore (the store is held), or before they do. The store gets a new epoch.
Members continue to run, but nothing starts, stops or moves, and no volume is given up,
before every node has reported what it runs: the nodes in the backup, those that servers
remember, and those that connect meanwhile. Start all servers and agents first. Changes
made after the backup must be applied again.

--status shows what was noticed, and which nodes have reported.
--off declares that nodes are powered off for good, so that nothing waits for them. Make
sure that they are off and stay off: whatever they run, unknown to the store, may
otherwise run twice.`,
		Example: `  stead restore
  stead restore --yes
  stead restore --status
  stead restore --status -o json
  stead restore --off host-c,host-d`,
		Args: exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case output != "" && output != "json":
				return misuse("-o %q: write json", output)
			case output != "" && !show:
				return misuse("-o can only be used with --status")
			case show && (yes || ended || len(off) > 0):
				return misuse("--status changes nothing, and cannot be used with --off, --ended or --yes")
			case ended && len(off) > 0:
				return misuse("--ended cannot be used with --off")
			}
			if show {
				return c.restoreStatus(cmd, output)
			}
			return c.restore(cmd, &proto.RestoreRequest{Off: off, Ended: ended}, yes)
		},
	}
	cmd.Flags().BoolVar(&show, "status", false, "only show the state of the restore")
	cmd.Flags().StringSliceVar(&off, "off", nil, "nodes that are powered off for good; the restore no longer waits for them")
	cmd.Flags().BoolVar(&ended, "ended", false, "continue with a store that 'stead server end' has ended; no server may ever have been started on the store that was made of it")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask for confirmation")
	cmd.Flags().StringVarP(&output, "output", "o", "", "with --status: json (default: table)")
	return cmd
}

// restore shows what would happen, asks, does it, and shows the new state.
func (c *cli) restore(cmd *cobra.Command, r *proto.RestoreRequest, yes bool) error {
	r.DryRun = true
	would, err := c.control.Restore(cmd.Context(), r)
	if err != nil {
		return err
	}
	question := "Was the store restored from a backup?"
	switch {
	case len(r.GetOff()) > 0:
		question = "Are these nodes powered off for good?"
	case r.GetEnded():
		question = "Was no server ever started on the store that was made of this one?"
	}
	printEffects(cmd.OutOrStdout(), would.GetEffects())
	if err := confirm(cmd, question, yes); err != nil {
		return err
	}
	r.DryRun = false
	if _, err := c.control.Restore(cmd.Context(), r); err != nil {
		return err
	}
	return c.restoreStatus(cmd, "")
}

// restoreStatus shows the state of the restore.
func (c *cli) restoreStatus(cmd *cobra.Command, output string) error {
	info, err := c.control.Info(cmd.Context(), &proto.InfoRequest{})
	if err != nil {
		return err
	}
	var st records.RestoreState
	raw := info.GetRestoreJson()
	if len(raw) == 0 {
		return errors.New("the server is too old to report restores; upgrade it")
	}
	if err := json.Unmarshal(raw, &st); err != nil {
		return err
	}
	if output == "json" {
		return (&printer{out: cmd.OutOrStdout(), form: output}).write(raw)
	}
	return printRestore(cmd.OutOrStdout(), st)
}

// printRestoreState prints the state of the restore, and what does not happen because of it.
func printRestoreState(out io.Writer, st records.RestoreState) {
	reported, excused := 0, 0
	for _, n := range st.Nodes {
		switch n.State {
		case records.NodeHeard:
			reported++
		case records.NodeExcused:
			excused++
		}
	}
	counted := fmt.Sprintf("%d of %d nodes have reported", reported, len(st.Nodes))
	if excused > 0 {
		counted += fmt.Sprintf(", %d excused", excused)
	}
	declared := fmt.Sprintf("declared by %s at %s, epoch %d", st.By, st.At.Format(time.DateTime), st.Epoch)
	switch st.State {
	case records.RestoreHeld:
		what := "the store went back, noticed by"
		if st.Ended {
			what = "the store was ended by"
		}
		fact(out, "restore", "%s %s: %s", what, st.By, st.Cause)
		fact(out, "", "HELD since %s: nothing starts, stops or moves, and nothing can be changed", st.At.Format(time.DateTime))
	case records.RestoreCounting:
		fact(out, "restore", "%s; %s", declared, counted)
		fact(out, "", "Nothing starts, stops or moves before all have reported")
	case records.RestoreComplete:
		fact(out, "restore", "complete (%s; %s)", declared, counted)
	default:
		fact(out, "restore", "the store was never restored (epoch %d)", st.Epoch)
	}
}

// printRestore prints the whole screen of 'restore --status'.
func printRestore(out io.Writer, st records.RestoreState) error {
	printRestoreState(out, st)
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
			state += ": declared off by " + n.Off
		case records.NodeWaited:
			since = age(st.At)
		}
		t.row(n.Name, state, yesNo(n.Connected), n.From, since)
	}
	return t.flush()
}

// printRestoring prints, for 'status', a restore that holds everything up; else nothing.
func printRestoring(out io.Writer, info *proto.InfoResponse) {
	var st records.RestoreState
	if json.Unmarshal(info.GetRestoreJson(), &st) != nil || st.State != records.RestoreHeld && st.State != records.RestoreCounting {
		return
	}
	printRestoreState(out, st)
	fact(out, "", "%s; see 'stead restore --status'", st.Next)
}
