package manifest

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// chartsThatApply are those of testdata/charts that apply as they are; the others are refused,
// in part for what is not built yet. A chart leaves this list never, and comes to it when
// its last field is honoured.
var chartsThatApply = []string{
	"cachered", "etcd", "ledgerdb", "mariadb-galera", "memcached", "metricsd", "monitoring", "nats", "openldap", "postgresql",
	"quorumkv", "rabbitmq", "redis", "roach", "streamq", "timecol", "zookeeper",
}

// TestCharts reads renderings in the style of real charts. Beside each is what is said, without
// a flag and with --skip-unsupported.
func TestCharts(t *testing.T) {
	files, err := filepath.Glob("testdata/charts/*.yaml")
	if err != nil || len(files) < 10 {
		t.Fatalf("found %d charts, %v", len(files), err)
	}
	var applied []string
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		out := saidOfChart(t, name, Options{})
		if strings.HasPrefix(out, "applies") {
			applied = append(applied, name)
		} else if rest := saidOfChart(t, name, Options{SkipUnsupported: true}); rest != out {
			out += "\nwith --skip-unsupported:\n" + rest
		}
		golden(t, "charts/"+name+".txt", []byte(out))
	}
	if got, want := strings.Join(applied, " "), strings.Join(chartsThatApply, " "); got != want {
		t.Errorf("these apply: %s; want %s", got, want)
	}
}

// saidOfChart is every problem, each with its place and with what to write; or what is applied,
// and the warnings.
func saidOfChart(t *testing.T, name string, opts Options) string {
	o, problems, warnings := Parse([]Source{read(t, "charts/"+name+".yaml")}, opts)
	var out strings.Builder
	for _, p := range problems {
		fmt.Fprintln(&out, p)
		if p.Fix == "" || p.Line == 0 {
			t.Errorf("%s: no place, or not what to write: %s", name, p)
		}
	}
	if len(problems) > 0 {
		return out.String()
	}
	if len(o.Claims) > 0 {
		fmt.Fprintf(&out, "applies: %d PersistentVolumeClaims\n", len(o.Claims))
	}
	fmt.Fprintf(&out, "applies: %d StatefulSets, %d Services, %d PodDisruptionBudgets, %d ConfigMaps, %d Secrets\n",
		len(o.Sets), len(o.Services), len(o.Budgets), len(o.ConfigMaps), len(o.Secrets))
	for _, w := range warnings {
		fmt.Fprintln(&out, "warning:", w)
	}
	return out.String()
}
