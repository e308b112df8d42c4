package scalar

import "testing"

func TestPlainTextMovesNoCursor(t *testing.T) {
	for in, want := range map[string]string{
		"":                               "",
		"exit code 1: Größe 5 µm, 日本":    "exit code 1: Größe 5 µm, 日本",
		"\x1b[31mred":                    "�[31mred",
		"\x1b]0;OWNED\a":                 "�]0;OWNED�",
		"all is well\rREFUSED":           "all is well�REFUSED",
		"a\nforged 1/1 Running\tcell":    "a forged 1/1 Running cell",
		"\u009b31m and \x7f and \x9b31m": "�31m and � and �31m",
		"gpj\u202eexe":                   "gpj�exe",
	} {
		if got := Plain(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}
