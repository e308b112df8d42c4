package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A join token need not be in the list of processes.
func TestAJoinTokenComesFromAFileStandardInputOrAVariable(t *testing.T) {
	dir := t.TempDir()
	file, empty := filepath.Join(dir, "token"), filepath.Join(dir, "empty")
	for path, text := range map[string]string{file: "from-file\n", empty: "\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name     string
		o        tokenOptions
		variable string
		want     string
		err      string
	}{
		{"none", tokenOptions{}, "", "", ""},
		{"itself", tokenOptions{token: "itself"}, "variable", "itself", ""},
		{"a file", tokenOptions{file: file}, "variable", "from-file", ""},
		{"standard input", tokenOptions{token: "-"}, "", "from-stdin", ""},
		{"the variable", tokenOptions{}, "variable", "variable", ""},
		{"two at once", tokenOptions{token: "a", file: file}, "", "", "not both"},
		{"no such file", tokenOptions{file: file + "x"}, "", "", "remove the flag if the node has already joined"},
		{"an empty file", tokenOptions{file: empty}, "", "", "is empty"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv(tokenVariable, c.variable)
			got, err := c.o.read(strings.NewReader(" from-stdin \n"))
			if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("got %q, %v", got, err)
			}
			if left, there := os.LookupEnv(tokenVariable); there {
				t.Errorf("the variable is %q still, for every process that is started", left)
			}
		})
	}
}

func TestAnEtcdInTheClearIsRefusedBeyondThisHost(t *testing.T) {
	for _, c := range []struct {
		endpoint string
		tls      bool
		good     bool
	}{
		{"https://10.0.0.1:2379", true, true},
		{"http://127.0.0.1:2379", false, true},
		{"http://[::1]:2379", false, true},
		{"http://localhost:2379", false, true},
		{"unix:///run/etcd.sock", false, true},
		{"10.0.0.1:2379", true, true},
		{"10.0.0.1:2379", false, false},
		{"http://10.0.0.1:2379", false, false},
		{"http://10.0.0.1:2379", true, false}, // TLS is dropped for it
		{"http://localhost.example:2379", false, false},
	} {
		o := storeOptions{Endpoints: []string{"https://10.0.0.9:2379", c.endpoint}}
		if err := o.checkSecure(c.tls); (err == nil) != c.good {
			t.Errorf("%s, TLS %v: got %v", c.endpoint, c.tls, err)
		}
		o.Insecure = true
		if o.checkSecure(c.tls) != nil {
			t.Errorf("%s: refused though it is accepted", c.endpoint)
		}
	}
}
