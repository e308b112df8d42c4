package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

func volumeReclaim(c *cli) *cobra.Command {
	ask := &proto.ReclaimVolumeRequest{}
	var yes bool
	var trash string
	var wait waitFlags
	cmd := &cobra.Command{
		Use:   "reclaim VOLUME",
		Short: "Give up a volume that no member uses nor will",
		Long: `Give up a volume that was kept, of a member that was scaled away or whose set is gone:
its node moves it to the trash, and erases it there when its time is over. The volume of
a member that its set wants is refused: scale the set first. VOLUME is a name as
'stead volume ls' shows it, or an id. What is given up is said first; then a terminal is
asked, and all others have to say --yes.

--lost says that a volume that is missing (VolumeMissing) is lost for good, also that of
a member that its set wants. Its node looks once more: what is there after all is kept,
else the member begins with a new, empty volume. Is its disk mounted? Of a host that is
off for good ('stead node fence') nobody looks: the member begins elsewhere at once, and
should the host return, what stands there goes to its trash.`,
		Example: `  stead volume reclaim data-etcd-3
  stead volume reclaim data-etcd-3 --yes --wait
  stead volume reclaim data-etcd-3 --yes --trash-period 0s
  stead volume reclaim data-etcd-1 --lost`,
		Args:              exactly(1, "a volume, as 'data-db-3'"),
		ValidArgsFunction: c.completeNames("volume"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ask.Namespace, ask.Name = c.namespace, args[0]
			if cmd.Flags().Changed("trash-period") {
				d, err := spec.ParseDuration(trash)
				if err != nil || d.Duration < 0 {
					return usageError{fmt.Errorf("--trash-period %q: write a time as 24h, or 0s", trash)}
				}
				millis := d.Milliseconds()
				ask.TrashMillis = &millis
			}
			question, said, verdict := "Give it up?", "is being given up", reclaimed
			if ask.Lost {
				question, said, verdict = "Is it lost for good?", "is taken as lost if its node does not find it", lostFor(args[0])
			}
			return c.with(func(control proto.ControlClient) error {
				ctx, cancel := call(cmd.Context())
				defer cancel()
				ask.DryRun = true
				would, err := control.ReclaimVolume(ctx, ask)
				if err != nil {
					return err
				}
				sayEffects(cmd.OutOrStdout(), would.GetEffects())
				if err := confirm(cmd, question, yes); err != nil {
					return err
				}
				ctx, cancel = call(cmd.Context()) // a person may have thought for long
				defer cancel()
				ask.DryRun, ask.Volume = false, would.GetVolume()
				if _, err = control.ReclaimVolume(ctx, ask); err != nil {
					return err
				}
				fmt.Fprintf(cmd.OutOrStdout(), "volume %s %s\n", args[0], said)
				return wait.volume(cmd, control, c.namespace, would.GetVolume(), verdict)
			})
		},
	}
	cmd.Flags().BoolVar(&ask.Lost, "lost", false, "it is missing, and lost for good")
	cmd.Flags().BoolVar(&yes, "yes", false, "do it without being asked")
	cmd.Flags().StringVar(&trash, "trash-period", "", "how long it lies in the trash (default: as its claim says, 24h otherwise)")
	wait.add(cmd, "wait until it is gone from its place")
	return cmd
}

// confirm asks on a terminal; elsewhere yes is needed.
func confirm(cmd *cobra.Command, question string, yes bool) error {
	if yes {
		return nil
	}
	keys, ok := cmd.InOrStdin().(*os.File)
	if !ok || !term.IsTerminal(int(keys.Fd())) {
		return usageError{errors.New("nothing was changed; say --yes, for there is no terminal to ask")}
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s [y/N] ", question)
	line, err := bufio.NewReader(keys).ReadString('\n')
	if answer := strings.ToLower(strings.TrimSpace(line)); err != nil || answer != "y" && answer != "yes" {
		return errors.New("nothing was changed")
	}
	return nil
}

// reclaimed is the verdict on a volume that is to be given up.
func reclaimed(v *records.Volume, st volumeStatus) (end string, err error) {
	switch {
	case v == nil:
		return "is gone", nil
	case v.Fate == records.FateTrashed:
		return fmt.Sprintf("lies in the trash of node %s, %s", v.Node, volumeNote(st)), nil
	case v.Fate == records.FateKeep && st.Asked == "":
		return "", errors.New("it was not given up: its member is wanted again, or was; 'stead get events' says why")
	}
	return "", nil
}

// lostFor is the verdict on a volume that is said to be lost.
func lostFor(name string) func(*records.Volume, volumeStatus) (string, error) {
	return func(v *records.Volume, st volumeStatus) (string, error) {
		switch {
		case v == nil:
			return "is gone", nil
		case v.Fate == records.FateTrashed:
			return fmt.Sprintf("what was left of it lies in the trash of node %s, %s", v.Node, volumeNote(st)), nil
		case v.Fate == records.FateKeep && st.Asked == "":
			return "", fmt.Errorf("%s is not lost: node %s found it, or a life began meanwhile; 'stead get events' says which", name, v.Node)
		}
		return "", nil
	}
}

// waitFlags are those of a verb that may wait until a volume is as it was asked.
type waitFlags struct {
	wait    bool
	timeout time.Duration
}

func (w *waitFlags) add(cmd *cobra.Command, use string) {
	cmd.Flags().BoolVar(&w.wait, "wait", false, use)
	cmd.Flags().DurationVar(&w.timeout, "timeout", 10*time.Minute, "how long --wait waits; exit code 3 when it is over")
}
