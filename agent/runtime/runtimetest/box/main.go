// Command box is the program of the test image: it does what its arguments say.
package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func main() {
	args := append(os.Args[1:], "", "", "")
	switch args[0] {
	case "run": // until SIGTERM
		c := make(chan os.Signal, 1)
		signal.Notify(c, syscall.SIGTERM)
		ready("running")
		<-c
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
		ready("stubborn")
		for {
			time.Sleep(time.Hour)
		}
	case "ready": // waits until the main process has set its signal handlers
		for range 1000 {
			if _, err := os.Stat(readyFile); err == nil {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
		os.Exit(98)
	case "chatty": // a numbered line every MILLIS
		every, _ := strconv.Atoi(args[1])
		for i := 0; ; i++ {
			fmt.Println("tick", i)
			time.Sleep(time.Duration(every) * time.Millisecond)
		}
	case "eat": // memory, without end
		for keep := [][]byte{}; ; keep = append(keep, make([]byte, 1<<20)) {
			for _, b := range keep {
				for i := 0; i < len(b); i += 4096 {
					b[i] = 1
				}
			}
		}
	case "fork": // leaves a child that holds stdout open
		_, err := syscall.ForkExec("/box", []string{"/box", "stubborn"}, &syscall.ProcAttr{Files: []uintptr{0, 1, 2}})
		check(err)
		fmt.Println("forked")
	case "forks": // starts COUNT processes that stay, or as many as it may
		count, _ := strconv.Atoi(args[1])
		for i := range count {
			if _, err := syscall.ForkExec("/box", []string{"/box", "stubborn"}, &syscall.ProcAttr{}); err != nil {
				fmt.Println("refused:", err)
				break
			} else if i == count-1 {
				fmt.Println("all started")
			}
		}
		time.Sleep(time.Hour)
	case "cat": // stdin to stdout, until its end
		_, err := io.Copy(os.Stdout, os.Stdin)
		check(err)
	case "tty": // prints the terminal's size, and again at each line of stdin
		for line := bufio.NewScanner(os.Stdin); ; {
			size, err := unix.IoctlGetWinsize(0, unix.TIOCGWINSZ)
			check(err)
			fmt.Println("size", size.Col, size.Row)
			if !line.Scan() || line.Text() == "end" {
				return
			}
		}
	case "echo":
		fmt.Println(args[1])
	case "fail":
		fmt.Fprintln(os.Stderr, args[1])
		code, _ := strconv.Atoi(args[2])
		os.Exit(code)
	case "exit":
		code, _ := strconv.Atoi(args[1])
		os.Exit(code)
	case "facts":
		facts()
	case "cage":
		cage()
	case "brood": // leaves children of many kinds, each called "chick", and waits
		brood()
		for {
			time.Sleep(time.Hour)
		}
	case "litter": // the same, and ends
		brood()
	case "hatch": // says that it began, and becomes a chick
		check(os.WriteFile(args[1], nil, 0o644))
		check(syscall.Exec("/box", []string{"/box", "chick"}, nil))
	case "pipe": // makes a pipe at PATH, says so, and waits until somebody opens it
		check(unix.Mkfifo(args[1], 0o666))
		fmt.Println("made")
		check(os.WriteFile(args[1], nil, 0))
	case "remove":
		if err := os.Remove(args[1]); err != nil {
			os.Exit(1)
		}
	case "chick":
		for {
			time.Sleep(time.Hour)
		}
	case "chicks": // how many of them the container has
		fmt.Println(chicks())
	case "write":
		check(os.WriteFile(args[1], []byte(args[2]), 0o600))
	case "plant": // a link to TARGET in place of the directory PATH
		check(os.RemoveAll(args[1]))
		check(os.Symlink(args[2], args[1]))
	case "swap": // the directory DIR and the link LINK, without end
		ready("swapping")
		for {
			check(unix.Renameat2(unix.AT_FDCWD, args[1], unix.AT_FDCWD, args[2], unix.RENAME_EXCHANGE))
		}
	case "read":
		text, err := os.ReadFile(args[1])
		check(err)
		os.Stdout.Write(text)
	}
}

const readyFile = "/tmp/ready"

// ready says that signals now do what they should. On a read-only root nobody can
// wait for it.
func ready(word string) {
	fmt.Println(word)
	_ = os.WriteFile(readyFile, nil, 0o644)
}

// facts prints what a process can see of its own cage.
func facts() {
	host, err := os.Hostname()
	check(err)
	groups, err := os.Getgroups()
	check(err)
	dir, err := os.Getwd()
	check(err)
	fmt.Println("hostname", host)
	fmt.Println("uid", os.Getuid(), "gid", os.Getgid(), "groups", groups)
	fmt.Println("dir", dir)
	fmt.Println("pid", os.Getpid())
	for _, e := range os.Environ() {
		fmt.Println("env", e)
	}
	var files syscall.Rlimit
	check(syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files))
	fmt.Println("nofile", files.Cur, files.Max)
	for _, f := range []string{"/proc/self/status", "/proc/self/mountinfo"} {
		text, err := os.ReadFile(f)
		check(err)
		os.Stdout.Write(text)
	}
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(99)
	}
}
