package arch

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheTreeKeepsTheLaw(t *testing.T) {
	root := filepath.Join("..", "..")
	if _, err := os.Stat(filepath.Join(root, "go.mod")); err != nil {
		t.Fatal(err)
	}
	found, files, err := Check(root)
	if err != nil {
		t.Fatal(err)
	}
	if files < 20 {
		t.Errorf("only %d files were judged", files)
	}
	for _, f := range found {
		t.Error(f)
	}
}

// Each violation is planted alone into a lawful tree, and must be the only one found.
func TestEveryRuleCatchesItsViolation(t *testing.T) {
	doc := "// Package x is planted.\npackage x\n"
	imports := func(p string) string { return doc + "import _ \"" + p + "\"\n" }
	cases := []struct{ name, file, text, want string }{
		{"spec imports ours", "spec/a.go", imports(module + "/store"), "spec imports nothing of ours"},
		{"plan imports the store", "server/plan/a.go", imports(module + "/store"), "pure code imports spec and records only"},
		{"a rule changes a fact", "server/plan/a.go", doc + "type facts struct{ aim string }\nfunc f(x *facts) { x.aim = \"\" }\n", "assigns a field of facts"},
		{"a rule changes a fact that it reaches through its draft", "server/plan/a.go", doc + "type life struct{ over bool }\ntype memberFacts struct{ life }\ntype state struct{ *memberFacts }\nfunc f(x []state) { x[0].over = true }\n", "assigns a field of memberFacts"},
		{"a rule deletes from a fact", "server/plan/a.go", doc + "type facts struct{ asked map[string]int }\nfunc f(x facts) { delete(x.asked, \"\") }\n", "assigns a field of facts"},
		{"proof imports plan", "server/proof/a.go", imports(module + "/server/plan"), "pure code imports spec and records only"},
		{"plan imports os", "server/plan/a.go", imports("os"), "pure code imports no os"},
		{"step imports sync", "agent/step/a.go", imports("sync"), "pure code imports no sync"},
		{"step imports rand", "agent/step/a.go", imports("math/rand/v2"), "pure code imports no math/rand/v2"},
		{"plan imports a library", "server/plan/a.go", imports("golang.org/x/sync/errgroup"), "no foreign library"},
		{"plan reads the clock", "server/plan/a.go", doc + "import \"time\"\nvar f = time.Now\n", "time.Now in pure code"},
		{"the worker reads the clock", "agent/worker/a.go", doc + "import \"time\"\nvar f = time.Now\n", "time comes in by its Config"},
		{"plan starts a goroutine", "server/plan/a.go", doc + "func f() { go f() }\n", "goroutine in pure code"},
		{"server imports agent", "server/a.go", imports(module + "/agent/runtime"), "meet only in cmd"},
		{"agent imports server", "agent/a.go", imports(module + "/server/plan"), "meet only in cmd"},
		{"a contract imports a body", "store/a.go", imports(module + "/store/memstore"), "never imports its bodies"},
		{"proto imports ours", "proto/a.go", imports(module + "/spec"), "proto imports nothing"},
		{"code imports cmd", "server/a.go", imports(module + "/cmd/stead"), "nothing imports cmd"},
		{"etcd client elsewhere", "server/engine/a.go", imports("go.etcd.io/etcd/client/v3"), "belongs into store/etcdstore"},
		{"etcd server in the client's folder", "store/etcdstore/a.go", imports("go.etcd.io/etcd/server/v3/embed"), "belongs into store/etcdembed"},
		{"containerd elsewhere", "agent/worker/a.go", imports("github.com/containerd/containerd/v2/client"), "belongs into agent/runtime/containerdrt"},
		{"dns elsewhere", "agent/a.go", imports("github.com/miekg/dns"), "belongs into dnsd"},
		{"yaml elsewhere", "cmd/stead/a.go", imports("gopkg.in/yaml.v3"), "belongs into manifest"},
		{"yaml in spec", "spec/a.go", imports("gopkg.in/yaml.v3"), "belongs into manifest"},
		{"manifest imports ours", "manifest/a.go", imports(module + "/store"), "manifest imports spec and records only"},
		{"plan imports manifest", "server/plan/a.go", imports(module + "/manifest"), "pure code imports spec and records only"},
		{"agent imports manifest", "agent/a.go", imports(module + "/manifest"), "agent must not reach it (agent → manifest)"},
		{"a room of agent imports manifest", "agent/files/a.go", imports(module + "/manifest"), "agent must not reach it (agent/files → manifest)"},
		{"a test of agent imports manifest", "agent/a_test.go", imports(module + "/manifest"), "agent must not reach it (agent → manifest)"},
		{"dnsd imports manifest", "dnsd/a.go", imports(module + "/manifest"), "dnsd must not reach it (dnsd → manifest)"},
		{"agent reaches manifest through another", "trust/a.go", imports(module + "/manifest"), "agent must not reach it (agent → trust → manifest)"},
		{"netlink elsewhere", "agent/a.go", imports("github.com/vishvananda/netlink"), "belongs into agent/network"},
		{"grpc elsewhere", "server/engine/a.go", imports("google.golang.org/grpc"), "belongs into proto"},
		{"cobra elsewhere", "server/a.go", imports("github.com/spf13/cobra"), "belongs into cmd"},
		{"scripts import tests", "scripts/a/a.go", imports(module + "/test/box"), "nothing imports cmd"},
		{"code imports judges", "server/a.go", imports(module + "/test/judge"), "nothing imports cmd"},
		{"a new library", "server/a.go", imports("example.com/x"), "is no library of ours"},
		{"scripts import a library", "scripts/a/a.go", imports("gopkg.in/yaml.v3"), "belongs into manifest"},
		{"no doc comment", "server/a.go", "package x\n", "has no doc comment"},
		{"an empty name", "server/util/a.go", "// Package util is.\npackage util\n", "says nothing"},
		{"a long file", "server/a.go", doc + strings.Repeat("\n", MaxLines), "lines; split it"},
		{"a fresh context", "server/a.go", doc + "import \"context\"\nvar c = context.Background()\n", "take the caller's context"},
		{"a wall clock that decides", "server/a.go", doc + "import \"time\"\ntype r struct {\n\tAt *time.Time `json:\"at\"`\n}\nfunc f(a r) bool { return time.Since(*a.At) > 0 }\n", "wall clock"},
		{"a wall clock that is compared", "agent/a.go", doc + "import \"time\"\ntype r struct {\n\tAt time.Time `json:\"at\"`\n}\nfunc f(a r, b time.Time) bool { return b.Before(a.At) }\n", "wall clock"},
		{"an init", "server/a.go", doc + "func init() {}\n", "func init"},
		{"a cause by hand", "server/plan/a.go", doc + "func f(s string) bool {\n\tswitch s {\n\tcase \"CrashLoop\":\n\t\treturn true\n\t}\n\treturn false\n}\n", "write causes.CrashLoop"},
		{"a cause under a name of its own", "agent/worker/a.go", doc + "const causeLoop = `CrashLoop`\n", "write causes.CrashLoop"},
		{"a word of another kind elsewhere", "agent/worker/a.go", doc + "const over = \"Stopped\"\n", "write causes.Stopped"},
		{"a cause with two names", causeFile, causeList + "const Loop Cause = \"CrashLoops\" // x\n", "Loop is no Cause that is named by its value"},
		{"a cause without its type", causeFile, causeList + "const Loop = \"Loop\" // x\n", "Loop is no Cause that is named by its value"},
		{"a cause that nobody explains", causeFile, causeList + "const Loop Cause = \"Loop\"\n", "Loop has no comment of one line"},
		{"a header that counts", "server/a.go", doc + "func f(n int) bool {\n\tif n++; n > 1 {\n\t\treturn true\n\t}\n\treturn false\n}\n", "a header that changes"},
		{"a header that assigns", "server/a_test.go", doc + "func f(n, m int) bool {\n\tswitch n = m; {\n\tcase n > 1:\n\t\treturn true\n\t}\n\treturn false\n}\n", "a header that changes"},
		{"a header that acts", "server/a.go", doc + "func f(n int) bool {\n\tif f(1); n > 1 {\n\t\treturn true\n\t}\n\treturn false\n}\n", "a header that changes"},
		{"a word of early years", "server/a.go", doc + "const m = \"%q is no name\"\n", "in a message"},
		{"a word at the end", "server/a.go", doc + "const m = \"it is gone for ever\"\n", "in a message"},
		{"a type of two meanings", "server/ok/a.go", doc + "// Planted is a type whose name another package has, too.\ntype Planted int\n", "type Planted is also in agent"},
		{"names that differ in capitals only", "server/a.go", doc + "func running() {}\n\n// Running is a state.\nconst Running = 1\n", "differs from running"},
		{"a type of many methods", "server/a.go", doc + "type big int\n" + many("func (big) m%d() {}\n", MaxMethods+1), "split the type"},
		{"a package with a large face", "server/a.go", doc + "// What it offers, one by one.\nconst (\n" + many("\tN%d = 1\n", MaxExported+1) + ")\n", "split the package"},
		{"doc comments without content", "server/a.go", doc + "// Foo is a foo.\ntype Foo int\n", "says more than the name"},
		{"unfinished work", "server/a.go", doc + "// TO" + "DO: later\n", "unfinished"},
		{"a machine's path", "server/a.go", doc + "const p = \"/home/me/x\"\n", "path of one machine"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			root := lawful(t)
			write(t, root, c.file, c.text)
			found, _, err := Check(root)
			if err != nil {
				t.Fatal(err)
			}
			if len(found) != 1 || !strings.Contains(found[0], c.want) || !strings.HasPrefix(found[0], filepath.Dir(c.file)) {
				t.Fatalf("found %q, want one with %q", found, c.want)
			}
		})
	}
}

// many repeats a format for numbers below n.
func many(format string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// The import that leads there may be in a file that is lawful by itself.
func TestAFolderIsKeptApartThroughOthers(t *testing.T) {
	root := lawful(t)
	write(t, root, "dnsd/a.go", "// Package x is planted.\npackage x\nimport _ \""+module+"/server/control\"\n")
	found, _, err := Check(root)
	want := "server/control/ok.go:3: import manifest: dnsd must not reach it (dnsd → server/control → manifest)"
	if err != nil || len(found) != 1 || found[0] != want {
		t.Errorf("found %q, %v; want %q", found, err, want)
	}
}

func TestALawfulTreeIsLeftAlone(t *testing.T) {
	root := lawful(t)
	write(t, root, ".gitignore", "/bin/\n")
	write(t, root, "bin/a.go", "package util\n")
	write(t, root, ".cache/a.go", "package util\n")
	write(t, root, "spec/testdata/a.go", "package util\n")
	write(t, root, "records/member.go", "// Package x is.\npackage x\nconst PhaseStopped = \"Stopped\" // it ended\n")
	write(t, root, "server/control/tag.go", "package x\ntype r struct{ A int `CrashLoop` }\n")
	write(t, root, "server/ok_test.go", "package x\nconst cause = \"CrashLoop\"\n")
	write(t, root, "scripts/gotest/a.go", "// Package gotest is the runner.\npackage gotest\nimport _ \""+module+"/test/judge\"\n")
	found, _, err := Check(root)
	if err != nil || len(found) != 0 {
		t.Fatalf("found %q, err %v", found, err)
	}
}

// What the lists of causes and of words spelled alike hold is used, so that they do not
// outlive their reasons.
func TestTheListsOfCausesHoldNothingThatIsGone(t *testing.T) {
	c := newChecker(filepath.Join("..", ".."))
	if _, _, err := c.check(); err != nil {
		t.Fatal(err)
	}
	for word, name := range c.cause {
		if !c.used[name] {
			t.Errorf("no agent and no server says %q or decides by it", word)
		}
	}
	if len(c.cause) < 35 {
		t.Errorf("only %d causes were found: does this test still find them?", len(c.cause))
	}
	for file, words := range causeAllowed {
		for word, why := range words {
			if !c.used[file+" "+word] {
				t.Errorf("%s does not say %q any more (%s)", file, word, why)
			}
		}
	}
}

// causeList is a small causeFile.
const causeList = `// Package x lists causes.
package x
type Cause string // why
const (
	CrashLoop Cause = "CrashLoop" // it ends
	Stopped   Cause = "Stopped"   // it ended
)
`

// lawful lays a small tree that uses what each folder may use.
func lawful(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for file, imports := range map[string][]string{
		"spec/ok.go":                       {"net/netip"},
		"manifest/ok.go":                   {"gopkg.in/yaml.v3", module + "/spec"},
		"server/plan/ok.go":                {"net/netip", "time", module + "/spec"},
		"server/place/ok.go":               {module + "/server/proof"},
		"server/plan/ok2.go":               {module + "/server/proof", module + "/server/place"},
		"server/plan/ok_test.go":           {module + "/manifest"},
		"server/control/ok.go":             {module + "/manifest"},
		"trust/ok.go":                      {"net"},
		"trust/ok_test.go":                 {module + "/manifest"},
		"agent/ok.go":                      {module + "/trust"},
		"agent/step/ok.go":                 {"sort", module + "/spec"},
		"store/ok.go":                      {"context", module + "/spec"},
		"store/etcdstore/ok.go":            {"go.etcd.io/etcd/client/v3", module + "/store"},
		"store/etcdembed/ok.go":            {"go.etcd.io/etcd/server/v3/embed"},
		"agent/runtime/containerdrt/ok.go": {"github.com/containerd/cgroups/v3", "github.com/opencontainers/runtime-spec/specs-go"},
		"cmd/stead/ok.go":                  {"context", "github.com/spf13/cobra", module + "/server", module + "/agent"},
		"test/e2e/ok.go":                   {"go.etcd.io/etcd/client/v3", module + "/server/plan", module + "/agent"},
	} {
		text := "// Package x is lawful.\npackage x\n"
		for _, i := range imports {
			text += "import _ \"" + i + "\"\n"
		}
		write(t, root, file, text)
	}
	write(t, root, causeFile, causeList)
	write(t, root, "agent/planted.go", "package x\n// Planted stands for the types that there are already.\ntype Planted int\n")
	return root
}

func write(t *testing.T, root, file, text string) {
	t.Helper()
	p := filepath.Join(root, file)
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
