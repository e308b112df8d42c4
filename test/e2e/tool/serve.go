package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"
)

// serve tells whoever connects to an address, or sends a packet there, the name of this member.
func serve(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return errors.New("want an address")
	}
	name, err := os.Hostname()
	if err != nil {
		return err
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
	go func() {
		b := make([]byte, 64)
		for {
			_, from, err := udp.ReadFrom(b)
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err == nil {
				_, _ = udp.WriteTo([]byte(name+"\n"), from)
			}
		}
	}()
	go func() {
		for {
			c, err := tcp.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err == nil {
				fmt.Fprintln(c, name)
				c.Close()
			}
		}
	}()
	<-ctx.Done()
	return nil
}

// web answers HTTP at an address until it is stopped.
func web(ctx context.Context, address string) error {
	s := http.Server{Addr: address, ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { s.Close() })
	s.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "well") })
	if err := s.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// dial prints what an address tells whoever connects.
func dial(ctx context.Context, address string) error {
	c, err := (&net.Dialer{Timeout: 10 * time.Second}).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = io.Copy(os.Stdout, c)
	return err
}
