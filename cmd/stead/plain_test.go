package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/stead-project/stead/proto"
)

// attack is what a member writes to take over the terminal of whoever looks at it.
const attack = "\x1b[2J\x1b]0;OWNED\a\rdb-0 1/1 Running\nforged\tline \u009b31m\x7f"

func TestWhatMembersSayReachesNoTerminalAsItIs(t *testing.T) {
	var out bytes.Buffer
	table := newTable(&out, "MEMBER", "MESSAGE")
	table.row("db-0", attack)
	if err := table.flush(); err != nil {
		t.Fatal(err)
	}
	describer{out: &out}.fields("Message", attack)
	fact(&out, "nodes", "%s", attack)
	printEffects(&out, []string{attack})
	object := &proto.Object{
		Kind: "set", Name: "db", Namespace: "default",
		Json: []byte(`{"kind":"Set","metadata":{"name":"db","namespace":"default"},"spec":{},"status":{"members":[{"name":"db-0","blocked":"` +
			strings.NewReplacer("\x1b", `\u001b`, "\a", `\u0007`, "\r", `\r`, "\n", `\n`, "\t", `\t`).Replace(attack) + `"}]}}`),
	}
	if err := printSet(&out, object); err != nil {
		t.Fatal(err)
	}
	for _, form := range []string{"json", "yaml"} {
		show, err := newPrinter(&out, form, "set", false)
		if err != nil {
			t.Fatal(err)
		}
		if err := show.all([]*proto.Object{object}, true); err != nil {
			t.Fatal(err)
		}
	}
	out.WriteString("stead: " + explainError(errors.New(attack)))
	if bad := strings.IndexAny(out.String(), "\x1b\a\r\u009b\x7f"); bad >= 0 {
		t.Errorf("%q reaches the terminal, in\n%q", out.String()[bad], out.String())
	}
	if strings.Contains(out.String(), "\nforged\tline") {
		t.Errorf("a line is forged in\n%s", out.String())
	}
}

func TestLogsOnATerminalControlNothing(t *testing.T) {
	var out bytes.Buffer
	s := &screen{out: &out}
	for _, b := range []byte("größer\t日本\n" + attack + "\x9b") {
		if n, err := s.Write([]byte{b}); n != 1 || err != nil {
			t.Fatalf("%d, %v", n, err)
		}
	}
	want := "größer\t日本\n" + `\x1b[2J\x1b]0;OWNED\x07\x0ddb-0 1/1 Running` + "\nforged\tline " + `\x9b31m\x7f\x9b`
	if out.String() != want {
		t.Errorf("got\n%q, want\n%q", out.String(), want)
	}
	if w := forReader(&out, false); w != &out {
		t.Errorf("a program gets %T, want what was written", w)
	}
}
