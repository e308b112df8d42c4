package files

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stead-project/stead/records"
)

// output is what a process wrote so far.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// The shell script in docs/MEMBERS.md is run as it stands there.
func TestTheReaderInTheDocsSeesEachEventOnce(t *testing.T) {
	doc, err := os.ReadFile("../../docs/MEMBERS.md")
	must(t, err)
	_, script, ok := strings.Cut(string(doc), "```sh\n")
	script, _, ok2 := strings.Cut(script, "```\n")
	if !ok || !ok2 || !strings.Contains(script, "while sleep 1;") {
		t.Fatalf("no script of a reader in docs/MEMBERS.md: %q", script)
	}
	p := At(t.TempDir(), life().Member.ID)
	var out output
	cmd := exec.CommandContext(t.Context(), "sh", "-c", strings.Replace(script, "sleep 1", "sleep 0.05", 1))
	cmd.Env = append(os.Environ(), "FACTS="+p.Stead)
	cmd.Stdout, cmd.Stderr = &out, &out
	must(t, cmd.Start())
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	wait := func(want string) {
		t.Helper()
		for end := time.Now().Add(time.Minute); out.String() != want; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("got  %q\nwant %q", out.String(), want)
			}
		}
	}
	write := func(changes []records.Change) {
		t.Helper()
		doc, err := Events(changes)
		must(t, err)
		must(t, Put(p.Stead, EventsFile, doc, 0o444))
	}
	change := func(n int64, kind records.ChangeKind, member, reason string) records.Change {
		return records.Change{Epoch: 1, Number: n, Kind: kind, Member: member, Reason: reason}
	}
	all := []records.Change{change(3, records.ChangeJoined, "db-0", "Create"), change(4, records.ChangeReady, "db-0", "")}
	write(all)
	want := "Joined db-0 Create\nReady db-0 \n"
	wait(want)
	all = append(all, change(5, records.ChangeReplicas, "", ""))
	write(all)
	wait(want + "ReplicasChanged  \n")
	write(append(all[2:], change(7, records.ChangeLeft, "db-1", "ScaleDown")))
	wait(want + "ReplicasChanged  \nevents are missing: look at set.json\nLeft db-1 ScaleDown\n")
}
