package arch

import (
	"slices"
	"strings"
)

// module is the path of our module, and of its root folder.
const module = "github.com/stead-project/stead"

// pure names the folders that decide and never act: they import the standard
// library (but none of impure), spec and records.
var pure = []string{"server/plan", "server/proof", "server/place", "server/quorum", "server/rotation", "server/tally", "agent/step", "agent/move/step"}

// pureMayUse are the pure folders that a pure folder may import beside those two.
var pureMayUse = map[string][]string{
	"server/plan":  {"server/proof", "server/place"},
	"server/place": {"server/proof"},
}

// simulated names the folders that test/sim runs on its own clock: they act, but read the
// time from their Config.
var simulated = []string{"agent/worker"}

var readsClock = map[string]bool{"time.Now": true, "time.Since": true, "time.Until": true, "time.Sleep": true}

// impure are the packages a pure folder must not import. net/netip is fine.
var impure = map[string]bool{
	"context": true, "os": true, "net": true, "sync": true, "log": true,
	"log/slog": true, "math/rand": true, "math/rand/v2": true, "crypto/rand": true,
	"sync/atomic": true, "os/exec": true, "os/signal": true, "syscall": true,
	"net/http": true, "io/fs": true, "path/filepath": true,
}

// contracts are folders that define an interface; below each are its bodies,
// which the contract must not import.
var contracts = []string{"store", "agent/runtime"}

// apart lists, by folder, the folders of ours that neither it nor what is below it
// may reach through any chain of imports. Nodes and DNS read no manifests: their
// programs hold no YAML decoder of ours.
var apart = map[string][]string{
	"agent":            {"manifest"},
	"dnsd":             {"manifest"},
	"cmd/stead-node":   {"manifest", "dnsd"},
	"cmd/stead-dns":    {"manifest", "server"},
	"cmd/stead-tunnel": {"manifest", "server", "dnsd"},
}

// home says in which folders a foreign library may be imported. A prefix that
// ends in a slash covers what is below it; longer prefixes win. Folders below
// test/ may import all of them, for tests look at the real things.
var home = map[string][]string{
	"go.etcd.io/etcd/client/v3":         {"store/etcdstore", "store/etcdembed"},
	"go.etcd.io/etcd/api/":              {"store/etcdstore", "store/etcdembed"},
	"go.etcd.io/etcd/client/pkg/":       {"store/etcdstore", "store/etcdembed"},
	"go.etcd.io/etcd/server/":           {"store/etcdembed"},
	"go.etcd.io/etcd/etcdutl/":          {"store/etcdembed"},
	"go.etcd.io/bbolt":                  {"store/etcdembed"},
	"go.etcd.io/raft/":                  {"store/etcdembed"},
	"go.uber.org/zap":                   {"store/etcdembed", "store/etcdstore"},
	"github.com/containerd/":            {"agent/runtime/containerdrt"},
	"github.com/opencontainers/":        {"agent/runtime/containerdrt", "scripts/debimage"},
	"github.com/moby/sys/":              {"agent/runtime/containerdrt"},
	"github.com/miekg/dns":              {"dnsd"},
	"gopkg.in/yaml.v3":                  {"manifest"},
	"github.com/vishvananda/":           {"agent/network"},
	"github.com/klauspost/compress/":    {"agent/runtime/archive"},
	"github.com/google/nftables":        {"agent/network"},
	"golang.zx2c4.com/wireguard/":       {"agent/wireguard/userspace"},
	"golang.zx2c4.com/wireguard/wgctrl": {"agent/network"},
	"google.golang.org/grpc":            {"proto", "internal/trace", "server/control", "server/dispatch", "server/fence", "server/access", "server/audit", "server/peers", "server/keyring", "server/authorities", "server", "agent", "agent/session", "agent/probe", "cmd/..."},
	"google.golang.org/protobuf":        {"store/etcdembed", "proto", "proto/wire", "server/control", "server/dispatch", "server", "agent", "agent/session", "cmd/..."},
	"github.com/spf13/":                 {"cmd/..."},
	"go.opentelemetry.io/":              {"internal/trace"},
	"github.com/coreos/go-systemd/":     {"cmd/stead"},
	"golang.org/x/term":                 {"cmd/..."},
	"github.com/prometheus/":            {"server", "agent", "agent/host", "cmd/..."},
	"golang.org/x/net/netutil":          {"dnsd", "agent/host"},
	"golang.org/x/sync/":                {"..."},
	"golang.org/x/time/rate":            {"agent/move/peer"},
	"golang.org/x/sys/":                 {"agent/...", "server", "cmd/...", "dnsd", "proto", "internal/deeptree"},
	"k8s.io/client-go/util/jsonpath":    {"cmd/stead"},
	"sigs.k8s.io/kustomize/":            {"cmd/stead"},
	"github.com/stead-project/stead/":   {"..."},
}

// compare prints the difference of two values; any test may use it.
const compare = "github.com/google/go-cmp"

// badNames are package names that say nothing.
var badNames = map[string]bool{
	"util": true, "utils": true, "common": true, "helper": true, "helpers": true,
	"types": true, "models": true, "manager": true, "base": true, "impl": true, "misc": true,
}

// moreMethods are types that have more methods than MaxMethods, and how many. The numbers fall.
var moreMethods = map[string]int{}

// moreExported are packages with more exported names than MaxExported, and how many. The numbers
// fall.
var moreExported = map[string]int{}

// importProblem says why a file of folder from (relative to the root, "" for the
// root) may not import path; "" if it may. test: the file is a _test.go.
func importProblem(from, path string, test bool) string {
	if below(from, "test") || below(from, "scripts") && !foreign(path) {
		return ""
	}
	if ours, ok := strings.CutPrefix(path, module+"/"); ok {
		return ownProblem(from, ours, test)
	}
	if !foreign(path) {
		if isPure(from) && impure[path] && !test {
			return "pure code imports no " + path
		}
		return ""
	}
	if isPure(from) {
		return "pure code imports no foreign library"
	}
	if test && below(path, compare) {
		return ""
	}
	folders, ok := homeOf(path)
	if !ok {
		return "is no library of ours; add it to home in test/arch/law_test.go"
	}
	for _, f := range folders {
		if f == from || f == "..." || strings.HasSuffix(f, "/...") && below(from, strings.TrimSuffix(f, "/...")) {
			return ""
		}
	}
	return "belongs into " + strings.Join(folders, ", ")
}

// ownProblem judges an import of one of our packages.
func ownProblem(from, ours string, test bool) string {
	switch {
	case ours == from:
		return "" // an external test of the package
	case below(from, "scripts") && ours == "test/judge":
		return "" // the runner knows what judges say
	case below(from, "scripts") && ours == "test/arch":
		return "" // scripts/measure prints what the law counts
	case from == "spec" && below(ours, "spec"):
		return ""
	case (from == "spec/netpol" || from == "spec/quota") && (ours == "spec" || ours == "spec/scalar"):
		return "" // what builds on the types of spec, and has none that spec needs
	case below(from, "spec"):
		return "spec imports nothing of ours"
	case from == "records" && (ours == "records/moves" || ours == "records/hooks" || ours == "records/inplace"):
		return "" // what a node says of moves is among its facts
	case below(from, "records") && !below(ours, "spec"):
		return "records imports spec only"
	case from == "manifest" && !below(ours, "spec") && ours != "records":
		return "manifest imports spec and records only"
	case isPure(from) && test && ours == "manifest":
		return "" // tests give the planner what users write
	case isPure(from) && !below(ours, "spec") && !below(ours, "records") && !slices.Contains(pureMayUse[from], ours):
		return "pure code imports spec and records only"
	case below(from, "server") && below(ours, "agent"), below(from, "agent") && below(ours, "server"):
		return "server and agent meet only in cmd and test"
	case below(ours, "cmd") && !below(from, "cmd"), below(ours, "test"), below(ours, "scripts"):
		return "nothing imports cmd (but cmd itself), test or scripts"
	case from == "proto":
		return "proto imports nothing of ours"
	}
	for _, c := range contracts {
		if from == c && below(ours, c) && !test {
			return "a contract never imports its bodies"
		}
	}
	return ""
}

// homeOf finds the folders of the longest matching prefix.
func homeOf(path string) ([]string, bool) {
	best, found := "", false
	for prefix := range home {
		bare := strings.TrimSuffix(prefix, "/")
		if (path == bare || strings.HasPrefix(path, bare+"/")) && len(prefix) > len(best) {
			best, found = prefix, true
		}
	}
	return home[best], found
}

// foreign reports whether an import path is outside the standard library.
func foreign(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return strings.Contains(first, ".")
}

func isPure(folder string) bool {
	for _, p := range pure {
		if below(folder, p) {
			return true
		}
	}
	return false
}
