package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec/scalar"
)

func volumeReclaim(c *cli) *cobra.Command {
	request := &proto.ReclaimVolumeRequest{}
	var yes bool
	var trash string
	var wait waitFlags
	cmd := &cobra.Command{
		Use:   "reclaim VOLUME",
		Short: "Give up a volume that no member needs any more",
		Long: `Give up a kept volume, of a member that was scaled down or whose set was deleted. Its
node moves it to the trash, and erases it when the trash period is over. The volume of a
member that its set still wants is refused: scale the set down first. VOLUME is a name, as
'stead volume ls' shows it, or an id. The command first shows what will be given up, then
asks for confirmation; without a terminal it needs --yes.

--lost declares that a missing volume (VolumeMissing) is lost for good. It may be the
volume of a member that its set wants. First check that its disk is mounted. The node
looks for the volume once more: if it is found it is kept, otherwise the member starts
with a new, empty volume. A node that is off for good ('stead node fence') cannot look:
the member starts elsewhere at once, and if the node returns, the old volume goes to its
trash.

--node names the node that has a volume which the store does not know (its fate is
Unknown): that one is given up, whatever the store has of its member.`,
		Example: `  stead volume reclaim data-etcd-3
  stead volume reclaim data-etcd-3 --yes --wait
  stead volume reclaim data-etcd-3 --yes --trash-period 0s
  stead volume reclaim data-etcd-1 --lost
  stead volume reclaim data-etcd-1 --node host-b`,
		Args:              exactly(1, "a volume, for example 'data-db-3'"),
		ValidArgsFunction: c.completeNames(proto.KindVolume),
		RunE: func(cmd *cobra.Command, args []string) error {
			request.Namespace, request.Name = c.namespace, args[0]
			if err := setTrashPeriod(request, cmd.Flags().Changed("trash-period"), trash); err != nil {
				return err
			}
			question, result, verdict := "Give it up?", "is being given up", reclaimed
			if request.Lost {
				question, result, verdict = "Is it lost for good?", "will count as lost unless its node finds it", lostFor(args[0])
			}
			if err := c.previewReclaim(cmd, request); err != nil {
				return err
			}
			if err := confirm(cmd, question, yes); err != nil {
				return err
			}
			if _, err := c.control.ReclaimVolume(cmd.Context(), request); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "volume %s %s\n", args[0], result)
			return wait.then(cmd, func(ctx context.Context) error {
				return c.waitVolume(ctx, request.GetVolume(), cmd.OutOrStdout(), verdict)
			})
		},
	}
	cmd.Flags().BoolVar(&request.Lost, "lost", false, "declare that the volume is missing, and lost for good")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask for confirmation")
	cmd.Flags().StringVar(&trash, "trash-period", "", "how long it is kept in the trash (default: that of its claim, or 24h)")
	cmd.Flags().StringVar(&request.Node, "node", "", "the node that has the volume, which the store does not know")
	wait.add(cmd, "wait until it is in the trash")
	return cmd
}

// setTrashPeriod parses --trash-period into request, if it was given.
func setTrashPeriod(request *proto.ReclaimVolumeRequest, given bool, period string) error {
	if !given {
		return nil
	}
	d, err := scalar.ParseDuration(period)
	if err != nil || d.Duration < 0 {
		return misuse("invalid --trash-period %q; use a duration such as 24h or 0s", period)
	}
	millis := d.Milliseconds()
	request.TrashMillis = &millis
	return nil
}

// previewReclaim shows what request would do, and changes it to be done to exactly that
// volume.
func (c *cli) previewReclaim(cmd *cobra.Command, request *proto.ReclaimVolumeRequest) error {
	request.DryRun = true
	preview, err := c.control.ReclaimVolume(cmd.Context(), request)
	if err != nil {
		return err
	}
	printEffects(cmd.OutOrStdout(), preview.GetEffects())
	request.DryRun, request.Volume = false, preview.GetVolume()
	return nil
}

// confirm asks on a terminal; without one, yes is needed.
func confirm(cmd *cobra.Command, question string, yes bool) error {
	if yes {
		return nil
	}
	if _, ok := terminal(cmd.InOrStdin()); !ok {
		return misuse("nothing was changed; there is no terminal to ask on, confirm with --yes")
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s [y/N] ", question)
	line, err := bufio.NewReader(cmd.InOrStdin()).ReadString('\n')
	if answer := strings.ToLower(strings.TrimSpace(line)); err != nil || answer != "y" && answer != "yes" {
		return errors.New("nothing was changed")
	}
	return nil
}

// reclaimed says how giving up a volume ended; empty while it is in progress.
func reclaimed(v *shownVolume) (end string, err error) {
	switch {
	case v == nil:
		return "is gone", nil
	case notDone(v):
		return "", errors.New("it was not given up; see 'stead get events'")
	case v.Spec.Fate == records.FateTrashed:
		return fmt.Sprintf("is in the trash of node %s, %s", v.Spec.Node, volumeNote(v.Status)), nil
	case v.Spec.Fate == records.FateKeep && v.Status.Asked == "":
		return "", errors.New("it was not given up, because its member is wanted again; see 'stead get events'")
	}
	return "", nil
}

// lostFor says how declaring a volume lost ended; empty while it is in progress.
func lostFor(name string) func(*shownVolume) (string, error) {
	return func(v *shownVolume) (string, error) {
		end, err := reclaimed(v)
		if err != nil {
			return "", fmt.Errorf("%s is not lost: node %s found it, or a life started meanwhile; see 'stead get events'", name, v.Spec.Node)
		}
		if v != nil && end != "" {
			end = "is lost; what was left of it " + end
		}
		return end, nil
	}
}
