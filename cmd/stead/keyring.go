package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stead-project/stead/proto"
)

func keyringCommand(c *cli) *cobra.Command {
	return group("keyring", "Rotate the key that seals Secrets and the authority's key", keyringList(c), keyringRotate(c), keyringRemove(c))
}

func keyringList(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:   "ls",
		Short: "List the keys of secret.key, which servers have them, and how far a rotation is",
		Long: `List the keys of secret.key by their ids, which tell nothing of them. USE is what a key is for:

  seals    what is written is sealed with it
  next     it seals as soon as all servers have it
  opens    it sealed before, and is kept to open older backups
  unused   a server has it, and nothing is sealed with it as far as the servers know`,
		Example: "  stead keyring ls",
		Args:    exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			list, err := c.keyring.List(cmd.Context(), &proto.ListKeysRequest{})
			if err != nil {
				return err
			}
			show := newTable(cmd.OutOrStdout(), "KEY", "USE", "SERVERS")
			for _, k := range list.GetKeys() {
				show.row(k.GetId(), k.GetUse(), strings.Join(k.GetServers(), ","))
			}
			if err := show.flush(); err != nil || list.GetWait() == "" {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "\n%s\n", list.GetWait())
			return err
		},
	}
}

func keyringRotate(c *cli) *cobra.Command {
	var without []string
	cmd := &cobra.Command{
		Use:   "rotate",
		Short: "Make a new key, and seal everything with it, while servers and members run",
		Long: `Make a new key. When all servers have it, it seals what is written, and then all Secrets and
the authority's key are sealed anew. The old key stays in secret.key of each server to open
backups of before, until 'stead keyring remove'. A server that is away gets the new key when it
returns; the rotation waits for it, unless it is named by --without.

Back up secret.key again, or make an encrypted backup, when 'stead keyring ls' shows that it is over.`,
		Example: "  stead keyring rotate\n  stead keyring rotate --without s3",
		Args:    exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			made, err := c.keyring.Rotate(cmd.Context(), &proto.RotateKeyRequest{Without: without})
			if err == nil {
				fmt.Fprintf(cmd.OutOrStdout(), "key %s seals when all servers have it; 'stead keyring ls' shows how far that is\n", made.GetId())
			}
			return err
		},
	}
	cmd.Flags().StringSliceVar(&without, "without", nil, "servers that are not waited for, because they are gone for good (repeatable)")
	return cmd
}

func keyringRemove(c *cli) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "remove KEY",
		Short: "Have all servers forget a key under which nothing is sealed",
		Long: `Have all servers forget a key under which nothing is sealed any more. Encrypted backups bring
the keys that they need. Of others, and of snapshots of etcd, those from before the rotation
need this key: keep a copy of secret.key from before the removal for as long as you keep them.`,
		Example: "  stead keyring remove 5d0a7c3e91b2 --yes",
		Args:    exactly(1, "the id of a key, as shown by 'stead keyring ls'"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := confirm(cmd, "Is there a copy of secret.key, or no backup that is not encrypted, from before key "+args[0]+" was replaced?", yes); err != nil {
				return err
			}
			_, err := c.keyring.Remove(cmd.Context(), &proto.RemoveKeyRequest{Id: args[0]})
			if err == nil {
				fmt.Fprintf(cmd.OutOrStdout(), "key %s is being removed from all servers\n", args[0])
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask for confirmation")
	return cmd
}

// printKeyring prints, for 'status', what a rotation of the key waits for.
func (c *cli) printKeyring(ctx context.Context, out io.Writer) {
	list, err := c.keyring.List(ctx, &proto.ListKeysRequest{})
	if err == nil && list.GetWait() != "" { // else an older server, or none is under way
		fact(out, "keyring", "%s", list.GetWait())
	}
}
