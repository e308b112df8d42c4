package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// List is one list file.
type List struct {
	Path       string
	Image      string
	From       string
	Users      []User
	Env        []string // NAME=VALUE; PATH takes the place of the usual one
	Entrypoint string   // a program; "": none
	Packages   []Package
	Jars       []Jar
	Programs   []Program
}

// User is a name for a uid, also the name and id of its group.
type User struct {
	Name string
	UID  int
}

// Package is one pinned package and the line it is on.
type Package struct {
	Name, Version string
	Line          int
}

var (
	packageName = regexp.MustCompile(`^[a-z0-9][a-z0-9+.-]+$`)
	packageVers = regexp.MustCompile(`^[0-9][A-Za-z0-9.+:~-]*$`)
	variable    = regexp.MustCompile(`^[A-Z_]+=\S+$`)
	userName    = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)
)

// ParseList reads a list; path is for messages.
func ParseList(path, text string) (List, error) {
	l := List{Path: path}
	n := 0
	for line := range strings.Lines(text) {
		n++
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		bad := fmt.Errorf("%s:%d: %q is not understood; write PACKAGE=VERSION, jar GROUP:NAME:VERSION[:CLASSIFIER] SHA256, go PROGRAM, image NAME:TAG, from LIST, user NAME UID, env NAME=VALUE or entrypoint PROGRAM", path, n, strings.TrimSpace(line))
		switch {
		case len(words) == 2 && words[0] == "image":
			l.Image = words[1]
		case len(words) == 2 && words[0] == "from" && userName.MatchString(words[1]):
			l.From = words[1]
		case len(words) == 2 && words[0] == "env" && variable.MatchString(words[1]):
			l.Env = append(l.Env, words[1])
		case len(words) == 2 && words[0] == "entrypoint" && strings.HasPrefix(words[1], "/"):
			l.Entrypoint = words[1]
		case len(words) == 3 && words[0] == "jar" && jarName.MatchString(words[1]) && jarSum.MatchString(words[2]):
			l.Jars = append(l.Jars, Jar{Name: words[1], SHA256: words[2], Line: n})
		case len(words) == 2 && words[0] == "go" && programPath.MatchString(words[1]):
			l.Programs = append(l.Programs, Program{Path: words[1], Line: n})
		case len(words) == 3 && words[0] == "user" && userName.MatchString(words[1]):
			uid, err := strconv.Atoi(words[2])
			if err != nil || uid < 1 {
				return l, bad
			}
			l.Users = append(l.Users, User{Name: words[1], UID: uid})
		case len(words) == 1:
			name, version, _ := strings.Cut(words[0], "=")
			if !packageName.MatchString(name) || !packageVers.MatchString(version) {
				return l, bad
			}
			l.Packages = append(l.Packages, Package{Name: name, Version: version, Line: n})
		default:
			return l, bad
		}
	}
	return l, nil
}

// ReadChain reads a list and those it builds on, the lowest first.
func ReadChain(folder, name string) ([]List, error) {
	var chain []List
	for next := name; next != ""; {
		path := filepath.Join(folder, next+".list")
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		l, err := ParseList(path, string(text))
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(chain, func(above List) bool { return above.Path == path }) {
			return nil, fmt.Errorf("%s builds on itself", path)
		}
		chain = slices.Insert(chain, 0, l)
		next = l.From
	}
	if chain[len(chain)-1].Image == "" {
		return nil, fmt.Errorf("%s names no image", chain[len(chain)-1].Path)
	}
	return chain, nil
}
