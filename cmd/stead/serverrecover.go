package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stead-project/stead/records/stores"
	"github.com/stead-project/stead/server/access"
	"github.com/stead-project/stead/server/seal"
	"github.com/stead-project/stead/store/etcdembed"
)

// recoverOptions name a stopped server of a store that has lost its majority.
type recoverOptions struct {
	DataDir, Name string
	Lost          []string // the other servers of the store
	Yes           bool
}

func serverRecover() *cobra.Command {
	var o recoverOptions
	cmd := &cobra.Command{
		Use:   "recover --lost NAME...",
		Short: "Continue with the data of this stopped server alone, when that of most servers is lost for good",
		Long: `Continue with the data of this stopped server alone, when that of most servers is lost for
good. Members keep running meanwhile. If enough of the other servers can be started again, do
that instead: then nothing is missing.

What only the lost servers had confirmed is missing afterwards, so this counts as a restore
from a backup: the server starts with the store held, and nothing is decided before 'stead
restore'. Name every other server of the store with --lost: none of them may run, and none
may be started again with its old data. It is refused while one answers. If several servers
are left, recover the one that prints the highest revision. What this server had is kept
beside its store, in etcd/data.before-recover.

Then start the server as before, let all agents connect, run 'stead restore', and make each
other server anew: 'stead server replace NAME' here, and there an empty data directory.`,
		Example: `  stead server recover --name s1 --lost s2,s3`,
		Args:    exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(o.Lost) == 0 {
				return misuse("name every other server of the store with --lost")
			}
			var err error
			if o.DataDir, err = filepath.Abs(o.DataDir); err != nil {
				return err
			}
			if o.Name == "" {
				if o.Name, err = os.Hostname(); err != nil {
					return fmt.Errorf("find the host's name: %w; give --name", err)
				}
				o.Name = strings.ToLower(o.Name)
			}
			if err := o.check(cmd.Context()); err != nil {
				return err
			}
			if err := confirm(cmd, "Is the data of "+strings.Join(o.Lost, ", ")+" lost for good?", o.Yes); err != nil {
				return err
			}
			return o.run(cmd.Context(), cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&o.DataDir, "data-dir", defaultDataDir, "the server's directory")
	cmd.Flags().StringVar(&o.Name, "name", "", "name of this server (default: the host's name)")
	cmd.Flags().StringSliceVar(&o.Lost, "lost", nil, "names of all other servers of the store")
	cmd.Flags().BoolVar(&o.Yes, "yes", false, "do not ask for confirmation")
	return cmd
}

// check refuses what is not certain: Lost must be all others, and none of them may answer.
func (o *recoverOptions) check(ctx context.Context) error {
	id, err := access.LoadIdentity(o.DataDir)
	if err == nil && id == nil {
		err = fmt.Errorf("the store in %s was never one of several servers: start the server, or unpack a backup", o.DataDir)
	}
	if err != nil {
		return err
	}
	members, err := etcdembed.MembersIn(embeddedDir(o.DataDir))
	if err != nil {
		return err
	}
	others, err := othersOf(members, o.Name, o.Lost)
	if err != nil {
		return err
	}
	key, err := seal.Load(filepath.Join(o.DataDir, "secret.key"))
	if err != nil {
		return err
	}
	a, err := id.Open(access.AuthorityConfig{Key: key, Server: o.Name, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	return noneAnswers(ctx, a, others)
}

// noneAnswers fails when one of the members' servers answers.
func noneAnswers(ctx context.Context, a *access.Authority, members []stores.StoreMember) error {
	for _, m := range members {
		if answers(ctx, a, m.Peer) {
			return fmt.Errorf("server %s answers at %s, so it is not lost: start this server, too; if most are lost nevertheless, stop %s first, and replace it later", m.Name, m.Peer, m.Name)
		}
	}
	return nil
}

// othersOf are the members beside self, if lost names each of them.
func othersOf(members []stores.StoreMember, self string, lost []string) ([]stores.StoreMember, error) {
	others := slices.DeleteFunc(slices.Clone(members), func(m stores.StoreMember) bool { return m.Name == self })
	if len(others) == len(members) {
		return nil, fmt.Errorf("the store in this directory is not that of a server %s; give --name", self)
	}
	var names []string
	for _, m := range others {
		names = append(names, m.Name)
	}
	wrong := slices.ContainsFunc(lost, func(name string) bool { return !slices.Contains(names, name) })
	for _, name := range names {
		wrong = wrong || name != "" && !slices.Contains(lost, name)
	}
	if wrong {
		return nil, fmt.Errorf("the other servers of the store are %s: name these with --lost, and no others", strings.Join(names, ", "))
	}
	return others, nil
}

// answerTime is how long a server may take to answer at its port for peers.
const answerTime = 5 * time.Second

// answers reports whether a server of the cluster listens for peers at address.
func answers(ctx context.Context, a *access.Authority, address string) bool {
	config, err := a.CallTLS(address)
	if err != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	conn, err := (&tls.Dialer{NetDialer: new(net.Dialer), Config: config}).DialContext(ctx, "tcp", address)
	if err != nil {
		return false
	}
	return conn.Close() == nil
}

func (o *recoverOptions) run(ctx context.Context, out io.Writer) error {
	st, err := etcdembed.Recover(ctx, etcdembed.Config{Dir: embeddedDir(o.DataDir), Name: o.Name}, "of the data of server "+o.Name+" alone")
	if errors.Is(err, etcdembed.ErrLocked) {
		return fmt.Errorf("%w; stop it first", err)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "recovered %d keys at revision %d; start the server, let all agents connect, and run 'stead restore'; then replace each of %s: 'stead server replace'\n",
		st.Keys, st.Rev, strings.Join(o.Lost, ", "))
	return nil
}
