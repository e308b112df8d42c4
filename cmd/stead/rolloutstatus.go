package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/spec"
)

func rolloutStatus(c *cli) *cobra.Command {
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "status SET",
		Short: "Wait until the update of a set is complete, and show what each member waits for",
		Long: `Wait until the update of a set is complete. With a partition, it is complete when the
members at or above the partition are updated; with OnDelete, when those that were
restarted are available. Exit code 1 when the update will not continue by itself: the
rollout is paused, stalled or was rolled back, or the set is deleted. 3 on timeout.`,
		Example: `  stead rollout status etcd --timeout 5m`,
		RunE: c.onSet(noRollout, func(cmd *cobra.Command, ref spec.SetRef) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			return c.followSet(ctx, ref, cmd.OutOrStdout(), rolloutEnd)
		}),
		ValidArgsFunction: c.completeNames(proto.KindSet),
	}
	cmd.Flags().DurationVar(&timeout, "timeout", 10*time.Minute, "time limit; exit code 3 when it expires")
	return cmd
}

// halted returns why a set will not reach its spec by itself; nil: it may.
func halted(o *shownSet) error {
	name, st := o.Metadata.Name, &o.Status
	if st.Deleting {
		return fmt.Errorf("set %s is being deleted", name)
	}
	if st.Orphaned {
		return fmt.Errorf("set %s is orphaned; apply it again to adopt its members, or delete it", name)
	}
	if st.ObservedGeneration < o.Metadata.Generation {
		return nil // the status is about an older spec
	}
	if st.RolledBackFrom != "" && st.RolledBackFrom == st.UpdateRevision {
		return fmt.Errorf("the update of set %s was rolled back: revision %s did not become available in time, and the members return to %s; apply a corrected manifest",
			name, st.UpdateRevision, st.CurrentRevision)
	}
	for _, c := range st.Conditions {
		switch {
		case c.Type == "Stalled" && c.Status == "True" && strings.Contains(c.Message, "stead "): // it says what to do
			return fmt.Errorf("the update of set %s is stalled (%s): %s", name, c.Reason, c.Message)
		case c.Type == "Stalled" && c.Status == "True":
			return fmt.Errorf("the update of set %s is stalled (%s): %s; apply a corrected manifest, or go back with 'stead rollout undo %s'", name, c.Reason, c.Message, name)
		case c.Type == "Progressing" && c.Reason == "Paused":
			return fmt.Errorf("the rollout of set %s is paused: %d of %d members run revision %s; continue with 'stead rollout resume %s'",
				name, st.UpdatedReplicas, replicasOf(&o.Spec), st.UpdateRevision, name)
		}
	}
	return nil
}

// rolloutEnd says how an update ended, or why it will not; empty while it is in progress.
func rolloutEnd(o *shownSet) (string, error) {
	if err := halted(o); err != nil {
		return "", err
	}
	if !settled(o, forAvailable) {
		return "", nil
	}
	st := &o.Status
	old := st.Replicas - st.UpdatedReplicas
	switch {
	case old == 0:
		return "is updated and available on revision " + string(st.UpdateRevision), nil
	case o.Spec.UpdateStrategy.Type == spec.OnDeleteStrategy:
		return fmt.Sprintf("is available; %d of %d members run revision %s, the others move to it when they are restarted (OnDelete)",
			st.UpdatedReplicas, st.Replicas, st.UpdateRevision), nil
	}
	return fmt.Sprintf("is partitioned: %d of %d members run revision %s and are available, the partition keeps the others on %s",
		st.UpdatedReplicas, st.Replicas, st.UpdateRevision, st.CurrentRevision), nil
}
