package main

import (
	"bufio"
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAWitnessIsToldOfEachKeyAlsoAfterItWasAway(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	told := &teller{addr: l.Addr().String()}
	heard := func() string {
		conn, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		line, err := bufio.NewReader(conn).ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		return line
	}
	told.tell("k1")
	if line := heard(); line != "k1\n" {
		t.Errorf("heard %q", line)
	}
	told.conn.Close() // as of a network that was cut
	told.tell("k2")   // reaches nobody
	told.tell("k3")
	if line := heard(); line != "k3\n" {
		t.Errorf("heard %q", line)
	}
	(&teller{}).tell("k4") // there is no witness
}

func TestKeysInAFileAreReadBack(t *testing.T) {
	file := filepath.Join(t.TempDir(), "acked")
	if err := os.WriteFile(file, []byte("k1\nk2"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		held map[string]string
		want string
	}{
		{"all are there", map[string]string{"k1": "k1", "k2": "k2"}, ""},
		{"one is not", map[string]string{"k1": "k1"}, "1 of 2 acknowledged keys lost"},
	} {
		err := readBack(context.Background(), func(int) keys { return shelf{c.held, nil, new(int)} }, file)
		if said := errorText(err); (c.want == "") != (err == nil) || !strings.Contains(said, c.want) {
			t.Errorf("%s: %q; want %q", c.name, said, c.want)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
