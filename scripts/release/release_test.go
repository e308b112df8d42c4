package main

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

const root = "../.."

func TestACommitIsCalledByItsTag(t *testing.T) {
	for _, c := range []struct{ tag, want string }{{"v1.2.3", "1.2.3"}, {"", "0.0.0~gitabc1234"}} {
		if got := versionOf(c.tag, "abc1234"); got != c.want || !debianVersion.MatchString(got) {
			t.Errorf("tag %q: %q, want %q", c.tag, got, c.want)
		}
	}
	for _, bad := range []string{"", "v1", "1.2-3", "1 2", "1/2", "1:2"} {
		if debianVersion.MatchString(bad) {
			t.Errorf("version %q is taken", bad)
		}
	}
}

// embeddedOr skips where nothing was built yet.
func embeddedOr(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(root, "cmd/stead/embed", name)
	if _, err := os.Stat(path); err != nil {
		t.Skip("stead-node is not built: make build")
	}
	return path
}

// The name server stands for stead, for it has many modules in it, too, and is built before the unit tests.
func TestTheBillOfMaterialsHasEveryModule(t *testing.T) {
	program := embeddedOr(t, "stead-dns")
	text, err := readBill(&release{version: "1.2.3", epoch: time.Unix(1e9, 0).UTC()}, program, root)
	if err != nil {
		t.Fatal(err)
	}
	again, err := readBill(&release{version: "1.2.3", epoch: time.Unix(1e9, 0).UTC()}, program, root)
	if err != nil || !bytes.Equal(text, again) {
		t.Fatalf("another one the second time: %v", err)
	}
	var b bill
	if err := json.Unmarshal(text, &b); err != nil {
		t.Fatal(err)
	}
	if b.Format != "CycloneDX" || b.Metadata.Timestamp != "2001-09-09T01:46:40Z" || b.Metadata.Component.Version != "1.2.3" ||
		!regexp.MustCompile(`^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$`).MatchString(b.Serial) {
		t.Errorf("the head is %q %q %+v", b.Format, b.Serial, b.Metadata)
	}
	refs, sums := map[string]component{}, goSums(t)
	for _, c := range b.Components {
		if _, twice := refs[c.Ref]; twice {
			t.Errorf("%s is there twice", c.Ref)
		}
		refs[c.Ref] = c
	}
	for _, name := range embedded {
		said, err := exec.CommandContext(t.Context(), "go", "version", "-m", embeddedOr(t, name)).Output()
		if err != nil {
			t.Fatal(err)
		}
		modules := 0
		for line := range strings.Lines(string(said)) {
			words := strings.Fields(line)
			if words[0] != "dep" {
				continue
			}
			modules++
			ref := "pkg:golang/" + strings.ToLower(words[1]) + "@" + words[2]
			c, there := refs[ref]
			if !there || c.Name != words[1] || c.Version != words[2] || c.PURL != ref {
				t.Errorf("%s of %s is %+v", ref, name, c)
			}
			if sum := sums[words[1]+" "+words[2]]; sum == "" || len(c.Hashes) != 1 || c.Hashes[0] != (hash{"SHA-256", sum}) {
				t.Errorf("%s has %v, and go.sum %q", ref, c.Hashes, sum)
			}
		}
		i := slices.IndexFunc(b.Dependencies, func(d dependency) bool { return d.Ref == name })
		if i < 0 || len(b.Dependencies[i].Uses) != modules+1 { // and Go's own packages
			t.Errorf("%s uses %d modules, and the bill says %+v", name, modules, b.Dependencies)
		}
	}
	for _, d := range b.Dependencies {
		for _, ref := range d.Uses {
			if refs[ref].Ref == "" {
				t.Errorf("%s uses %s, which is no component", d.Ref, ref)
			}
		}
	}
}

// goSums are the hashes of go.sum in hex, by path and version.
func goSums(t *testing.T) map[string]string {
	t.Helper()
	f, err := os.Open(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sums := map[string]string{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		words := strings.Fields(lines.Text())
		sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(words[2], "h1:"))
		if err != nil {
			t.Fatal(err)
		}
		sums[words[0]+" "+words[1]] = hex.EncodeToString(sum)
	}
	return sums
}

// The whole program is compared by make release-check, which takes minutes.
func TestABuildKnowsNothingOfItsDirectory(t *testing.T) {
	tree, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	var texts [2][]byte
	for i := range texts {
		other := filepath.Join(t.TempDir(), "tree") // of another name each time
		if err := os.Symlink(tree, other); err != nil {
			t.Fatal(err)
		}
		program := filepath.Join(t.TempDir(), "stead-node")
		if err := compile(t.Context(), other, program, "./cmd/stead-node", ""); err != nil {
			t.Fatal(err)
		}
		if texts[i], err = os.ReadFile(program); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(texts[0], texts[1]) {
		t.Error("two builds differ")
	}
	home, err := output(t.Context(), root, "go", "env", "GOMODCACHE")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{tree, home, "CGO_ENABLED=1", "vcs.revision"} {
		if bytes.Contains(texts[0], []byte(path)) {
			t.Errorf("the program has %q in it", path)
		}
	}
}

// packaged makes a package of a stand-in of stead, which writes as little as it can.
func packaged(t *testing.T) (deb string) {
	t.Helper()
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		t.Skip("needs dpkg-deb (package dpkg)")
	}
	dir := t.TempDir()
	p := debian{release: &release{version: "1.2.3", arch: "amd64", epoch: time.Unix(1e9, 0).UTC()},
		tree: root, program: filepath.Join(dir, "stead"), sbom: filepath.Join(dir, "sbom"), root: filepath.Join(dir, "root")}
	stub := "#!/bin/sh\nif [ $1 = man ]; then echo page > $2/stead.1; else echo $2; fi\n"
	if err := os.WriteFile(p.program, []byte(stub), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p.sbom, []byte(`{"purl": "pkg:golang/github.com/spf13/cobra@`+versionIn(t, "github.com/spf13/cobra")+`"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	deb = filepath.Join(dir, "stead.deb")
	if err := p.build(t.Context(), deb); err != nil {
		t.Fatal(err)
	}
	return deb
}

func versionIn(t *testing.T, module string) string {
	t.Helper()
	v, err := output(t.Context(), root, "go", "list", "-m", "-f", "{{.Version}}", module)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestAPackageIsTheSameTwice(t *testing.T) {
	var texts [2][]byte
	for i := range texts {
		var err error
		if texts[i], err = os.ReadFile(packaged(t)); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(texts[0], texts[1]) {
		t.Error("two packages of the same files differ")
	}
}

func TestThePackageHasWhatItsUnitsStart(t *testing.T) {
	deb, dir := packaged(t), filepath.Join(t.TempDir(), "all")
	for _, verb := range [][]string{{"-R", deb, dir}, {"-f", deb}} {
		if out, err := exec.CommandContext(t.Context(), "dpkg-deb", verb...).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	for _, file := range []string{"usr/bin/stead", "etc/default/stead", "usr/share/man/man1/stead.1.gz", "usr/share/bash-completion/completions/stead",
		"usr/share/zsh/vendor-completions/_stead", "usr/share/fish/vendor_completions.d/stead.fish", "usr/share/doc/stead/copyright",
		"usr/share/doc/stead/changelog.gz", "usr/share/doc/stead/licenses.gz", "usr/share/doc/stead/stead.cdx.json"} {
		if _, err := os.Stat(filepath.Join(dir, file)); err != nil {
			t.Error(err)
		}
	}
	options, err := os.ReadFile(filepath.Join(dir, "etc/default/stead"))
	if err != nil {
		t.Fatal(err)
	}
	for unit, option := range map[string]string{"stead": "STEAD_OPTIONS", "stead-server": "STEAD_SERVER_OPTIONS", "stead-agent": "STEAD_AGENT_OPTIONS"} {
		text, err := os.ReadFile(filepath.Join(dir, "lib/systemd/system", unit+".service"))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "/usr/local/") || !strings.Contains(string(text), "\nExecStart=/usr/bin/stead ") ||
			!strings.Contains(string(text), " $"+option+"\n") || !strings.Contains(string(options), "\n"+option+"=\n") {
			t.Errorf("%s starts another program, or with other options:\n%s\n%s", unit, text, options)
		}
	}
	if links, err := filepath.Glob(filepath.Join(dir, "etc/systemd/system/*")); err != nil || len(links) > 0 {
		t.Errorf("something is enabled: %v %v", links, err)
	}
	control, err := os.ReadFile(filepath.Join(dir, "DEBIAN/control"))
	if err != nil || strings.Contains(string(control), "@") && !strings.Contains(string(control), "maintainers@stead.dev") ||
		!strings.Contains(string(control), "\nVersion: 1.2.3\n") || !strings.Contains(string(control), "\nDepends: containerd (>= 1.6)") {
		t.Errorf("%v\n%s", err, control)
	}
	listed, err := exec.CommandContext(t.Context(), "dpkg-deb", "-c", deb).Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(listed)) {
		words := strings.Fields(line)
		if words[1] != "root/root" || words[3] != "2001-09-09" ||
			!slices.Contains([]string{"drwxr-xr-x", "-rwxr-xr-x", "-rw-r--r--"}, words[0]) {
			t.Error(line)
		}
	}
}
