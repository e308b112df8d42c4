package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
)

// listen answers each connection to a port of the loopback, once the other side has said all, with
// how much that was and its checksum, and then sends all zeros that were said, one for each.
func listen(ctx context.Context, port string) error {
	l, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { l.Close() })
	fmt.Println("listens")
	for {
		conn, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer conn.Close()
			sum := sha256.New()
			n, err := io.Copy(sum, conn)
			if err != nil {
				return
			}
			_, err = fmt.Fprintf(conn, "%d %x\n", n, sum.Sum(nil))
			for zeros := make([]byte, 64<<10); err == nil && n > 0; n -= int64(len(zeros)) {
				_, err = conn.Write(zeros[:min(n, int64(len(zeros)))])
			}
		}()
	}
}
