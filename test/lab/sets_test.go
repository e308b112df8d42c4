package lab

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/stead-project/stead/test/judge"
)

// lifeSets are two sets of which the witness hears every tenth of a second: hold has a member on each host, with a
// volume, held through silence; guard has two that are guarded, and replaced elsewhere after 15 s.
const lifeSets = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: hold}
spec:
  serviceName: hold
  replicas: 3
  podManagementPolicy: Parallel
  selector: {matchLabels: {app: hold}}
  template:
    metadata: {labels: {app: hold}}
    spec:
      terminationGracePeriodSeconds: 5
      containers:
      - name: life
        image: stead.local/tool:1
        imagePullPolicy: Never
        command: [/box, life, "--witness=udp:` + witnessAddress + `"]
        ports: [{name: probe, containerPort: 8080}]
        readinessProbe: {tcpSocket: {port: probe}, periodSeconds: 1}
        volumeMounts: [{name: data, mountPath: /data}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}
---
apiVersion: stead/v1
kind: StatefulSet
metadata: {name: guard}
spec:
  serviceName: guard
  replicas: 2
  podManagementPolicy: Parallel
  nodeLoss: {policy: Replace, after: 15s}
  selector: {matchLabels: {app: guard}}
  template:
    metadata: {labels: {app: guard}}
    spec:
      terminationGracePeriodSeconds: 5
      containers:
      - name: life
        image: stead.local/tool:1
        imagePullPolicy: Never
        command: [/box, life, --lock=, "--witness=udp:` + witnessAddress + `"]
        ports: [{name: probe, containerPort: 8080}]
        readinessProbe: {tcpSocket: {port: probe}, periodSeconds: 1}
`

var (
	holds  = []string{"hold-0", "hold-1", "hold-2"}
	guards = []string{"guard-0", "guard-1"}
)

// applyLives starts the sets of lives.
func (h *hosts) applyLives() {
	h.Helper()
	file := filepath.Join(h.dir, "lives.yaml")
	if err := os.WriteFile(file, []byte(lifeSets), 0o600); err != nil {
		h.Fatal(err)
	}
	h.stead("apply", "-f", file, "--wait", "--timeout", "4m")
}

// database is a set of examples/ with a member on each of three hosts, under acknowledged writes.
type database struct {
	*hosts
	set     string
	port    string
	loads   []*program
	members []string
}

// newDatabase applies an example and waits until it is available.
func (h *hosts) newDatabase(set, port string) *database {
	h.Helper()
	example, err := os.ReadFile("../../examples/" + set + "/" + set + ".yaml")
	if err != nil {
		h.Fatal(err)
	}
	return h.newDatabaseOf(set, port, string(example))
}

// newDatabaseOf does it with another manifest.
func (h *hosts) newDatabaseOf(set, port, example string) *database {
	h.Helper()
	// To start a program for a probe takes seconds here; three of ZooKeeper, each with a host's one processor for its
	// start, are never ready otherwise. MariaDB maps 8 TiB unless it is told less, and a program has less of addresses on these kernels.
	text := strings.NewReplacer("innodb-buffer-pool-size = 64M\n", "innodb-buffer-pool-size = 64M\n    loose-innodb-buffer-pool-size-max = 64M\n",
		"--no-defaults ", "--no-defaults --loose-innodb-buffer-pool-size-max=64M ", "periodSeconds: 2\n", "periodSeconds: 10\n", "timeoutSeconds: 3\n", "timeoutSeconds: 30\n", "timeoutSeconds: 5\n", "timeoutSeconds: 30\n").Replace(example)
	file := filepath.Join(h.dir, set+".yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		h.Fatal(err)
	}
	h.stead("apply", "-f", file)
	d := &database{hosts: h, set: set, port: port}
	at := map[string]bool{}
	for i := range 3 {
		d.members = append(d.members, fmt.Sprint(set, "-", i))
		h.ready(d.members[i])
		at[d.route(i)] = true
	}
	if len(at) != 3 {
		h.Errorf("%s is on %v; want three hosts", set, at)
	}
	return d
}

// route leads packets of this machine's end for a member's address to the member's host.
func (d *database) route(i int) (node string) {
	d.Helper()
	m := d.member(d.members[i])
	d.lab("wire", "ip", "route", "replace", m.Address, "via", address(d.hostOf(m)))
	return m.Node
}

// write starts a writer.
func (d *database) write() {
	d.Helper()
	var endpoints []string
	for _, name := range d.members {
		endpoints = append(endpoints, d.member(name).Address+":"+d.port)
	}
	d.loads = append(d.loads, d.start(d.tool, "load", "--kind", d.set, "--endpoints", strings.Join(endpoints, ","),
		"--writers", "1", "--pause", "60ms", "--for", "12h", "--prefix", fmt.Sprintf("load-%d/", len(d.loads))))
}

// read ends the writers, who read every acknowledged key back, and then asks each member for itself what it has.
func (d *database) read() {
	d.Helper()
	acked := 0
	for _, p := range d.loads {
		out, errors := p.end()
		d.Logf("%s: load: %s%s", d.set, out, errors)
		var sum struct{ Acked, Lost, Unreadable int }
		if err := json.Unmarshal([]byte(out), &sum); err != nil || sum.Acked == 0 {
			d.Errorf("%s: the load says nothing: %v: %q %s", d.set, err, out, errors)
		}
		if sum.Lost != 0 || sum.Unreadable != 0 {
			judge.Broken(d, "%s: acknowledged writes: %s", d.set, out)
		}
		acked += sum.Acked
	}
	d.loads = nil
	if d.set != "etcd" {
		return
	}
	for _, name := range d.members {
		d.hasAll(name, acked)
	}
}

// hasAll fails the test when a member itself does not have as many keys as were acknowledged.
func (d *database) hasAll(name string, acked int) {
	d.Helper()
	has := -1
	began := time.Now()
	for ; has < acked && time.Since(began) < looking; time.Sleep(time.Second) { // the last of it is on its way
		has = d.counted(name)
	}
	if has < acked {
		judge.Broken(d, "%s itself has %d keys of %d acknowledged", name, has, acked)
	}
}

// counted is how many keys of the loads a member of etcd has on its own disk; -1 if it does not answer.
func (d *database) counted(name string) int {
	body := fmt.Sprintf(`{"key":%q,"range_end":%q,"serializable":true,"count_only":true}`, b64("load-"), b64("load."))
	out, err := d.try(looking, script, "wire", "curl", "-sf", "-m", "20", "-d", body,
		"http://"+d.member(name).Address+":2379/v3/kv/range")
	var got struct{ Count string }
	if err != nil || json.Unmarshal([]byte(out), &got) != nil {
		return -1
	}
	n, err := strconv.Atoi(got.Count)
	if err != nil {
		return -1
	}
	return n
}

func b64(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

// whole waits until every host is connected and every member of the sets named is ready.
func (h *hosts) whole(names ...string) {
	h.Helper()
	h.connected()
	h.eventually("all members are ready", func() error {
		all, err := h.tryMembers()
		for _, name := range names {
			if err == nil && !all[name].Ready {
				err = fmt.Errorf("%s: %+v", name, all[name])
			}
		}
		return err
	})
}
