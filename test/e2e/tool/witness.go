package main

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"sync"
)

// witness appends every line it is told to a file, whole, until it is stopped. The
// file appears when it listens.
func witness(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("witness", flag.ContinueOnError)
	listen := flags.String("listen", "0.0.0.0:7777", "address to listen on")
	path := flags.String("file", "witness.log", "file to append to")
	datagrams := flags.Bool("datagrams", false, "hear datagrams, and write this machine's time instead of theirs: lives on hosts with clocks of their own")
	stamp := flags.Bool("stamp", false, "begin each line with this machine's time since its boot, in nanoseconds")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *datagrams {
		return hearDatagrams(ctx, *listen, *path)
	}
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", *listen)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(*path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	context.AfterFunc(ctx, func() { l.Close() })
	var mu sync.Mutex
	for {
		conn, err := l.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		go func() {
			defer conn.Close()
			lines := bufio.NewScanner(conn)
			for lines.Scan() {
				mu.Lock()
				line := lines.Text() + "\n"
				if *stamp {
					line = fmt.Sprint(monotonic(), " ", line)
				}
				_, err := file.WriteString(line)
				mu.Unlock()
				if err != nil {
					return
				}
			}
		}()
	}
}

// hearDatagrams writes each line that comes in a datagram, with the time at which it came.
func hearDatagrams(ctx context.Context, listen, path string) error {
	conn, err := net.ListenPacket("udp", listen)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	context.AfterFunc(ctx, func() { conn.Close() })
	for buf := make([]byte, 1500); ; {
		n, _, err := conn.ReadFrom(buf)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		fields := bytes.Fields(buf[:n])
		if len(fields) != 4 {
			continue // not of a life
		}
		if _, err := fmt.Fprintf(file, "%s %s %s %d\n", fields[0], fields[1], fields[2], monotonic()); err != nil {
			return err
		}
	}
}
