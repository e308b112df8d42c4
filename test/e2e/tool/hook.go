package main

import (
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// await adds the word begun to a file, and returns when the other file is there, whatever it is told
// meanwhile: await FILE BEGUN.
func await(args []string) error {
	if err := note(args[1], "begun"); err != nil {
		return err
	}
	for {
		if _, err := os.Stat(args[0]); err == nil {
			return nil
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// ended adds the word ended to a file when it is asked to end, by SIGUSR1.
func ended(args []string) error {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGUSR1)
	<-asked
	return note(args[0], "ended")
}

// trial adds to a file what its hook is about, and why the member is to leave, and fails unless another file is there: trial LOG ALLOWED.
func trial(args []string) error {
	reason, _ := os.ReadFile("/run/stead/termination-reason")
	if err := note(args[0], fmt.Sprintf("%s:%s:%s", os.Getenv("STEAD_HOOK"), os.Getenv("STEAD_GONE_FQDN"), strings.TrimSpace(string(reason)))); err != nil {
		return err
	}
	if _, err := os.Stat(args[1]); err != nil {
		return fmt.Errorf("shards are left")
	}
	return nil
}
