package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// shown is what a container sees of itself, as one line of JSON.
type shown struct {
	Env      map[string]string    `json:"env"`
	UID      int                  `json:"uid"`
	GID      int                  `json:"gid"`
	Groups   []int                `json:"groups"`
	Hostname string               `json:"hostname"`
	Nofile   uint64               `json:"nofile"`
	Files    map[string]shownFile `json:"files"`
}

type shownFile struct {
	Content string `json:"content"`
	Mode    string `json:"mode"`
	Error   string `json:"error,omitempty"`
}

// show prints what the container sees, files named as arguments included, writes
// to each path of -write, and waits until it is stopped.
func show(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("show", flag.ContinueOnError)
	writes := flags.String("write", "", "comma-separated files to write")
	if err := flags.Parse(args); err != nil {
		return err
	}
	s := shown{Env: map[string]string{}, UID: os.Getuid(), GID: os.Getgid(), Files: map[string]shownFile{}}
	for _, kv := range os.Environ() {
		k, v, _ := strings.Cut(kv, "=")
		s.Env[k] = v
	}
	s.Groups, _ = os.Getgroups() // shown empty when it fails
	s.Hostname, _ = os.Hostname()
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err == nil {
		s.Nofile = limit.Max
	}
	for _, path := range strings.FieldsFunc(*writes, func(r rune) bool { return r == ',' }) {
		if err := os.WriteFile(path, []byte("written"), 0o600); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	for _, path := range flags.Args() {
		s.Files[path] = look(path)
	}
	if err := json.NewEncoder(os.Stdout).Encode(s); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

func look(path string) shownFile {
	info, err := os.Stat(path)
	if err != nil {
		return shownFile{Error: err.Error()}
	}
	f := shownFile{Mode: info.Mode().String()}
	if info.Mode().IsRegular() {
		content, err := os.ReadFile(path)
		if err != nil {
			f.Error = err.Error()
		}
		f.Content = string(content)
	}
	return f
}
