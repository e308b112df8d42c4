package main

import (
	"os"
	"os/signal"
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
