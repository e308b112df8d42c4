package e2e

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const prometheusConfig = `global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [%q]
scrape_configs:
- {job_name: stead-server, static_configs: [{targets: ["127.0.0.1:9464"]}]}
- {job_name: stead-agent, static_configs: [{targets: ["127.0.0.1:9465"]}]}
`

// prometheusBinary is a program of Debian's prometheus, unpacked and not installed, which would start a service.
func (l *Lab) prometheusBinary(name string) string {
	l.t.Helper()
	binary, err := exec.LookPath(name)
	if err != nil {
		if binary, err = filepath.Abs("../../.cache/tools/usr/bin/" + name); err == nil {
			_, err = os.Stat(binary)
		}
	}
	if err != nil {
		l.t.Skip("no Prometheus of Debian: make e2e unpacks it")
	}
	return binary
}

// empty are metrics of which a cluster of one server that is well has no series.
var empty = []string{"stead_members_blocked", "stead_ignored_total", "stead_dns_unfollowed_total", "stead_store_voters", "stead_store_quorum", "stead_store_index"}

func TestPrometheusWatchesACluster(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	prometheus, promtool := l.prometheusBinary("prometheus"), l.prometheusBinary("promtool")
	flags := []string{"--metrics", "127.0.0.1:9464"}
	if !externalStore() {
		flags = append(flags, "--backup-dir", l.path("backups"), "--backup-every", "1m")
	}
	l.startServer(flags...)
	l.startAgent("--metrics", "127.0.0.1:9465")
	l.stead("image", "load", l.toolArchive())
	l.apply("net", repairSet, "--wait", "--timeout", patience)
	l.apply("quota", "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: some}\nspec: {hard: {pods: 10}}\n")
	if out, err := l.trySteadFor(time.Minute, "scale", "net", "--replicas", "11"); err == nil || !strings.Contains(out, "some") {
		t.Errorf("more members than the quota allows: %v %s", err, out)
	}
	l.waitDig("net-0.net.default.svc.cluster.local", l.mustMember("net-0").Status.Address)
	for _, port := range []string{"9464", "9465"} {
		out, err := l.inside(time.Minute, "bash", "-c", "curl -sf http://127.0.0.1:"+port+"/metrics | "+promtool+" check metrics")
		if err != nil || strings.TrimSpace(out) != "" {
			t.Errorf("promtool on the names of port %s: %v\n%s", port, err, out)
		}
	}
	rules, err := filepath.Abs("../../deploy/alerts.yaml")
	if err == nil {
		err = os.WriteFile(l.path("prometheus.yml"), fmt.Appendf(nil, prometheusConfig, rules), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	l.start("prometheus", prometheus, "--config.file", l.path("prometheus.yml"), "--storage.tsdb.path", l.path("tsdb"),
		"--web.listen-address", "127.0.0.1:9090", "--log.level", "warn")
	l.eventually(2*time.Minute, "Prometheus evaluates each alert", l.alertsAreWell)
	for _, expr := range l.dashboard() {
		l.eventually(2*time.Minute, expr+" has data", func() error { return l.hasData(expr) })
	}
	end(t, l.agent)
	l.eventually(2*time.Minute, "an agent that is gone is told", func() error {
		out, err := l.prometheus("alerts", "")
		if err != nil || !strings.Contains(out, `"SteadTargetDown"`) || !strings.Contains(out, `"SteadNodeSilent"`) {
			return fmt.Errorf("%v %s", err, out)
		}
		return nil
	})
}

// prometheus asks its API.
func (l *Lab) prometheus(what, query string) (string, error) {
	return l.inside(time.Minute, "curl", "-sf", "-m", "20", "http://127.0.0.1:9090/api/v1/"+what+"?"+query)
}

// alertsAreWell: all are evaluated without an error, and what is known of a cluster that is well wakes nobody.
func (l *Lab) alertsAreWell() error {
	var said struct {
		Data struct {
			Groups []struct {
				Rules []struct{ Name, Health, LastError, State string }
			}
		}
	}
	out, err := l.prometheus("rules", "")
	if err == nil {
		err = json.Unmarshal([]byte(out), &said)
	}
	if err != nil {
		return err
	}
	seen := 0
	for _, g := range said.Data.Groups {
		for _, r := range g.Rules {
			seen++
			if r.Health != "ok" || r.LastError != "" || r.State != "inactive" {
				return fmt.Errorf("%+v", r)
			}
		}
	}
	if seen < 15 {
		return fmt.Errorf("only %d alerts", seen)
	}
	return nil
}

// dashboard are its expressions, with the variables filled in.
func (l *Lab) dashboard() (all []string) {
	l.t.Helper()
	var d struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	text, err := os.ReadFile("../../deploy/dashboard.json")
	if err == nil {
		err = json.Unmarshal(text, &d)
	}
	if err != nil {
		l.t.Fatal(err)
	}
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			all = append(all, strings.NewReplacer("$cluster", ".*", "$__rate_interval", "1m").Replace(target.Expr))
		}
	}
	return all
}

// hasData asks an expression: it has no error, and something to show where it should.
func (l *Lab) hasData(expr string) error {
	out, err := l.prometheus("query", url.Values{"query": {expr}}.Encode())
	if err != nil {
		return err
	}
	var said struct {
		Status string
		Data   struct{ Result []json.RawMessage }
	}
	if err := json.Unmarshal([]byte(out), &said); err != nil || said.Status != "success" {
		return fmt.Errorf("%v: %s", err, out)
	}
	may := externalStore() && (strings.Contains(expr, "quota") || strings.Contains(expr, "backup"))
	for _, name := range empty {
		may = may || strings.Contains(expr, name)
	}
	if len(said.Data.Result) == 0 && !may {
		return fmt.Errorf("no data: %s", out)
	}
	return nil
}
