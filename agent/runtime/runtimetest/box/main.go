// Command box is the program of the test image: it does what its arguments say.
package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func main() {
	args := append(os.Args[1:], "", "", "")
	if do := commands[args[0]]; do != nil {
		do(args[1], args[2])
	}
}

// commands are what the box can do, by name, with up to two arguments.
var commands = map[string]func(a, b string){
	"run": func(a, b string) { // until SIGTERM
		c := make(chan os.Signal, 1)
		signal.Notify(c, syscall.SIGTERM)
		ready("running")
		<-c
	},
	"stubborn": func(a, b string) {
		signal.Ignore(syscall.SIGTERM)
		ready("stubborn")
		stay()
	},
	"ready": func(a, b string) { // waits until the main process has set its signal handlers
		for range 1000 {
			if _, err := os.Stat(readyFile); err == nil {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
		os.Exit(98)
	},
	"chatty": func(a, b string) { // a numbered line every A milliseconds
		every, _ := strconv.Atoi(a)
		for i := 0; ; i++ {
			fmt.Println("tick", i)
			time.Sleep(time.Duration(every) * time.Millisecond)
		}
	},
	"eat": func(a, b string) { // memory, without end
		for keep := [][]byte{}; ; keep = append(keep, make([]byte, 1<<20)) {
			for _, page := range keep {
				for i := 0; i < len(page); i += 4096 {
					page[i] = 1
				}
			}
		}
	},
	"hold": func(a, b string) { // A MiB of memory, and B MiB of a file in the kernel's cache, until SIGTERM
		held, cached := bytes.Repeat([]byte{1}, mebibytes(a)), bytes.Repeat([]byte{2}, 1<<20)
		f, err := os.Create("/tmp/cached")
		check(err)
		for range mebibytes(b) >> 20 {
			_, err := f.Write(cached)
			check(err)
		}
		check(f.Sync())
		ready("holding")
		stop := make(chan os.Signal, 1)
		signal.Notify(stop, syscall.SIGTERM)
		<-stop
		runtime.KeepAlive(held)
	},
	"fork": func(a, b string) { // leaves a child that holds stdout open
		_, err := syscall.ForkExec("/box", []string{"/box", "stubborn"}, &syscall.ProcAttr{Files: []uintptr{0, 1, 2}})
		check(err)
		fmt.Println("forked")
	},
	"forks": func(a, b string) { // starts A processes that stay, or as many as it may
		count, _ := strconv.Atoi(a)
		for i := range count {
			if _, err := syscall.ForkExec("/box", []string{"/box", "stubborn"}, &syscall.ProcAttr{}); err != nil {
				fmt.Println("refused:", err)
				break
			} else if i == count-1 {
				fmt.Println("all started")
			}
		}
		time.Sleep(time.Hour)
	},
	"cat": func(a, b string) { // stdin to stdout, until its end
		_, err := io.Copy(os.Stdout, os.Stdin)
		check(err)
	},
	"tty": func(a, b string) { // prints the terminal's size, and again at each line of stdin
		for line := bufio.NewScanner(os.Stdin); ; {
			size, err := unix.IoctlGetWinsize(0, unix.TIOCGWINSZ)
			check(err)
			fmt.Println("size", size.Col, size.Row)
			if !line.Scan() || line.Text() == "end" {
				return
			}
		}
	},
	"echo": func(a, b string) { fmt.Println(a) },
	"env":  func(a, b string) { fmt.Println(os.Getenv(a)) },
	"fail": func(a, b string) {
		fmt.Fprintln(os.Stderr, a)
		code, _ := strconv.Atoi(b)
		os.Exit(code)
	},
	"exit": func(a, b string) {
		code, _ := strconv.Atoi(a)
		os.Exit(code)
	},
	"facts": func(a, b string) { facts() },
	"cage":  func(a, b string) { cage() },
	"brood": func(a, b string) { // leaves children of many kinds, each called "chick", and waits
		brood()
		stay()
	},
	"litter": func(a, b string) { brood() }, // the same, and ends
	"hatch": func(a, b string) { // says that it started, and becomes a chick
		check(os.WriteFile(a, nil, 0o644))
		check(syscall.Exec("/box", []string{"/box", "chick"}, nil))
	},
	"pipe": func(a, b string) { // makes a pipe at A, says so, and waits until it is opened
		check(unix.Mkfifo(a, 0o666))
		fmt.Println("made")
		check(os.WriteFile(a, nil, 0))
	},
	"remove": func(a, b string) {
		if err := os.Remove(a); err != nil {
			os.Exit(1)
		}
	},
	"chick":  func(a, b string) { stay() },
	"chicks": func(a, b string) { fmt.Println(chicks()) }, // how many of them the container has
	"write":  func(a, b string) { check(os.WriteFile(a, []byte(b), 0o600)) },
	"plant": func(a, b string) { // a link to B in place of the directory A
		check(os.RemoveAll(a))
		check(os.Symlink(b, a))
	},
	"swap": func(a, b string) { // the directory A and the link B, without end
		ready("swapping")
		for {
			check(unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE))
		}
	},
	"read": func(a, b string) {
		text, err := os.ReadFile(a)
		check(err)
		os.Stdout.Write(text)
	},
}

func mebibytes(text string) int {
	n, err := strconv.Atoi(text)
	check(err)
	return n << 20
}

func stay() {
	for {
		time.Sleep(time.Hour)
	}
}

const readyFile = "/tmp/ready"

// ready says that signals now do what they should. On a read-only root this
// cannot be waited for.
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

// brood leaves a child of one's own session, one that left it, and one whose parent has
// left it, too, and is gone: a daemon.
func brood() {
	start := func(sys *syscall.SysProcAttr, args ...string) int {
		pid, err := syscall.ForkExec("/box", append([]string{"/box"}, args...), &syscall.ProcAttr{Sys: sys, Env: os.Environ(), Files: []uintptr{0, 1, 2}})
		check(err)
		return pid
	}
	start(nil, "chick")
	start(&syscall.SysProcAttr{Setsid: true}, "chick")
	if len(os.Args) > 2 { // a parent of daemons
		return
	}
	pid := start(&syscall.SysProcAttr{Setsid: true}, "litter", "once")
	_, err := syscall.Wait4(pid, nil, 0, nil)
	check(err)
	for chicks() < 4 { // all have started
		time.Sleep(time.Millisecond)
	}
	check(os.WriteFile("/tmp/brood", nil, 0o644))
}

func chicks() int {
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	check(err)
	n := 0
	for _, f := range files {
		if text, err := os.ReadFile(f); err == nil && strings.HasPrefix(string(text), "/box\x00chick\x00") {
			n++
		}
	}
	return n
}
