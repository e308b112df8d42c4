package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"
)

// harm is a member in trouble: memory N uses that many MiB and waits; disk FILE
// appends to a file, until the disk is full quickly, and says when that begins to
// fail and to work again.
func harm(ctx context.Context, args []string) error {
	if len(args) != 2 {
		return errors.New("want memory MIB, or disk FILE")
	}
	switch args[0] {
	case "memory":
		return useMemory(ctx, args[1])
	case "disk":
		return useDisk(ctx, args[1])
	case "escape":
		return escape(args[1])
	}
	return fmt.Errorf("no harm %q", args[0])
}

func useMemory(ctx context.Context, mib string) error {
	n, err := strconv.Atoi(mib)
	if err != nil {
		return err
	}
	used := make([]byte, n<<20)
	for i := 0; i < len(used); i += 4096 {
		used[i] = 1
	}
	fmt.Printf("%d MiB are used\n", len(used)>>20)
	<-ctx.Done()
	return nil
}

func escape(target string) error {
	const dir = "/data/sub"
	if to, err := os.Readlink(dir); err == nil && to == target {
		return os.WriteFile("/sub/by-the-member", []byte("it wrote here"), 0o600)
	}
	if err := errors.Join(os.RemoveAll(dir), os.Symlink(target, dir)); err != nil {
		return err
	}
	return errors.New("a link is planted; again")
}

func useDisk(ctx context.Context, path string) error {
	const most, least = 64 << 10, 1 << 10
	block, pause, said := make([]byte, most), 10*time.Millisecond, "nothing"
	for ctx.Err() == nil {
		now := "wrote"
		if err := appendTo(path, block); err != nil && len(block) > least {
			block = block[:len(block)/2] // what is left may be less than a block
			continue
		} else if err != nil { // from now on it needs little of what others make room for
			now, pause = err.Error(), time.Second
		}
		if now != said {
			fmt.Println(now)
			said = now
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
	return nil
}

func appendTo(path string, block []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(block)
	return errors.Join(err, f.Sync(), f.Close())
}

// hold takes an address, over UDP and TCP, until it is told to stop.
func hold(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return errors.New("want an address")
	}
	udp, err := net.ListenPacket("udp", args[0])
	if err != nil {
		return err
	}
	defer udp.Close()
	tcp, err := net.Listen("tcp", args[0])
	if err != nil {
		return err
	}
	defer tcp.Close()
	fmt.Println(args[0], "is held")
	<-ctx.Done()
	return nil
}
