package files

import (
	"net/netip"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

func TestAPlainShellReadsWhatSetJSONSays(t *testing.T) {
	p := records.Snapshot{
		Sequence: spec.Sequence{Epoch: 1, Rev: 10}, Ref: spec.SetRef{Namespace: "prod", Name: "db"}, Replicas: 3, InitialOrdinals: []int{1, 3}, Bootstrapped: true,
		Peers: []records.Peer{
			{Name: "db-3", Ordinal: 3, FQDN: "db-3.x", Address: netip.MustParseAddr("10.88.0.4"), Volumes: records.VolumesNew},
			{Name: "db-1", Ordinal: 1, FQDN: "db-1.x", Address: netip.MustParseAddr("10.88.0.2"), Ready: true, Volumes: records.VolumesUsed},
		},
		Expected: []records.Peer{{Name: "db-2", Ordinal: 2}},
	}
	equal(t, "all", shell(t, wholeEnv(&p), `
		echo "$STEAD_SEQUENCE, $STEAD_REPLICAS, $STEAD_INITIAL_ORDINALS, $STEAD_BOOTSTRAPPED, $STEAD_USED"
		while read -r ordinal name fqdn address ready volumes; do echo "$volumes $ready $address $fqdn $name $ordinal"; done <<END
$STEAD_PEERS
END`), `1 10, 3, 1 3, 1, 1
used ready 10.88.0.2 db-1.x db-1 1
- no - - db-2 2
new no 10.88.0.4 db-3.x db-3 3
`)
	p = records.Snapshot{Replicas: 2}
	equal(t, "of an empty set", shell(t, wholeEnv(&p), `echo "$STEAD_REPLICAS[$STEAD_INITIAL_ORDINALS$STEAD_BOOTSTRAPPED$STEAD_USED$STEAD_PEERS]"`), "2[]\n")
}

func TestAQuotedWordIsReadAsItIsAndNotRun(t *testing.T) {
	for _, word := range []string{
		"", "plain", "it's", "''", `\`, `\'`, "$(echo ran)", "`echo ran`", "$HOME", `"; echo ran; "`, "'; echo ran; '", "a\nb", "é\u2028", "!!", "*", "~",
	} {
		equal(t, word, shell(t, []byte("X="+"'"+quotedPart(word)+"'\n"), `printf %s "$X"`), word)
	}
}

// shell runs lines in a shell that has read content.
func shell(t *testing.T, content []byte, lines string) string {
	t.Helper()
	dir := t.TempDir()
	must(t, Put(dir, SetEnvFile, content, 0o444))
	out, err := exec.CommandContext(t.Context(), "sh", "-euc", ". "+filepath.Join(dir, SetEnvFile)+"\n"+strings.TrimSpace(lines)).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v", out, err)
	}
	return string(out)
}
