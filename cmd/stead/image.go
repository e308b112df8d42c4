package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"

	"github.com/stead-project/stead/proto"
)

func imageCommand(c *cli) *cobra.Command {
	return group("image", "Load and list images on nodes", imageLoadCommand(c), imageListCommand(c))
}

func imageLoadCommand(c *cli) *cobra.Command {
	var node string
	cmd := &cobra.Command{
		Use:     "load ARCHIVE",
		Short:   "Load an OCI archive onto a node, without a registry",
		Example: `  stead image load etcd.tar`,
		Args:    exactly(1, "one archive, or - for standard input"),
		RunE: func(cmd *cobra.Command, args []string) error {
			in := cmd.InOrStdin()
			if args[0] != "-" {
				f, err := os.Open(args[0])
				if err != nil {
					return err
				}
				defer f.Close()
				in = f
			}
			stream, err := c.control.LoadImage(cmd.Context())
			if err != nil {
				return err
			}
			if err := sendArchive(stream, node, in); err != nil && !errors.Is(err, io.EOF) {
				return err
			}
			done, err := stream.CloseAndRecv()
			if err != nil {
				return err
			}
			for _, i := range done.GetImages() {
				fmt.Fprintf(cmd.OutOrStdout(), "loaded %s (%s) on %s\n", i.GetName(), bytesText(i.GetSizeBytes()), i.GetNode())
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&node, "node", "", "the node (default: the only one)")
	return cmd
}

// sendArchive sends all of in. The error is io.EOF when the server refused it, which
// CloseAndRecv returns.
func sendArchive(stream grpc.ClientStreamingClient[proto.LoadImageRequest, proto.LoadImageResponse], node string, in io.Reader) error {
	if err := stream.Send(&proto.LoadImageRequest{Node: node}); err != nil {
		return err
	}
	buf := make([]byte, 256<<10)
	for {
		n, err := in.Read(buf)
		if n > 0 {
			if err := stream.Send(&proto.LoadImageRequest{Data: buf[:n]}); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read archive: %w", err)
		}
	}
}

func imageListCommand(c *cli) *cobra.Command {
	var node string
	cmd := &cobra.Command{
		Use:     "ls",
		Short:   "List images on nodes",
		Example: `  stead image ls`,
		Args:    exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			got, err := c.control.Images(cmd.Context(), &proto.ImagesRequest{Node: node})
			if err != nil {
				return err
			}
			t := newTable(cmd.OutOrStdout(), "NODE", "IMAGE", "SIZE", "DIGEST")
			for _, i := range got.GetImages() {
				t.row(i.GetNode(), i.GetName(), bytesText(i.GetSizeBytes()), i.GetDigest())
			}
			return t.flush()
		},
	}
	cmd.Flags().StringVar(&node, "node", "", "only images on this node")
	return cmd
}
