package lab

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/stead-project/stead/test/judge"
)

// inside writes to a database from inside of each host, by a unit that is enabled. Each acknowledged key is told at once to a witness on
// this machine's end of the network that is never cut: what the witness has must be there in the end, whatever befell the writer.
type inside struct {
	*database
	told string // the witness's file: when, on this machine's clock since boot, and the key
}

// tellAddresses are the addresses of these witnesses, by database.
var tellAddresses = map[string]string{"etcd": "10.78.0.1:7778", "postgresql": "10.78.0.1:7779", "galera": "10.78.0.1:7780", "cassandra": "10.78.0.1:7781", "nats": "10.78.0.1:7782"}

const writerUnit = `[Unit]
After=network.target
[Service]
ExecStart=/root/tool load --kind %s --endpoints %s --tell %s --writers 1 --pause 300ms --for 12h --prefix load-%%H-%%b/
[Install]
WantedBy=multi-user.target
`

// writeInside starts writers on all hosts.
func (d *database) writeInside() *inside {
	d.Helper()
	w := &inside{database: d, told: filepath.Join(d.dir, d.set+"-told.log")}
	witness := tellAddresses[d.set]
	d.start(d.tool, "witness", "--stamp", "--listen", witness, "--file", w.told)
	unit := filepath.Join(d.dir, w.unit())
	var names []string
	for _, name := range d.members {
		names = append(names, fmt.Sprintf("%s.%s.default.svc.cluster.local:%s", name, d.set, d.port))
	}
	if err := os.WriteFile(unit, fmt.Appendf(nil, writerUnit, d.set, strings.Join(names, ","), witness), 0o600); err != nil {
		d.Fatal(err)
	}
	d.each(func(i int) {
		if _, err := d.trySSH(i, "test -e /root/"+filepath.Base(d.tool)); err != nil { // another database's writer may run it
			d.lab("put", fmt.Sprint(i), d.tool, "/root/")
		}
		d.lab("put", fmt.Sprint(i), unit, "/etc/systemd/system/")
		d.ssh(i, "systemctl daemon-reload && systemctl enable -q --now "+w.unit()+" && sync") // the host may lose its power at once
	})
	for i := 1; i <= d.n; i++ {
		w.goesOn(i)
	}
	return w
}

func (w *inside) unit() string { return "writes-" + w.set + ".service" }

// goesOn waits until a writer of that host was acknowledged a key from now on.
func (w *inside) goesOn(i int) {
	w.Helper()
	from := clock(w)
	w.eventually(fmt.Sprintf("%s acknowledges to the writer of %s", w.set, host(i)), func() error {
		for at, key := range w.acked() {
			if at > from && strings.HasPrefix(key, "load-"+host(i)+"-") {
				return nil
			}
		}
		return fmt.Errorf("nothing was told since")
	})
}

// acked is what the witness was told, in its order.
func (w *inside) acked() func(yield func(time.Duration, string) bool) {
	text, err := os.ReadFile(w.told)
	if err != nil {
		w.Fatal(err)
	}
	return func(yield func(time.Duration, string) bool) {
		for line := range strings.Lines(string(text)) {
			var at time.Duration
			var key string
			if _, err := fmt.Sscanf(line, "%d %s\n", &at, &key); err == nil && !yield(at, key) {
				return
			}
		}
	}
}

// gap is the longest time since then in which no writer was acknowledged anything.
func (w *inside) gap(since time.Duration) (longest time.Duration) {
	w.Helper()
	last := since
	for at := range w.acked() {
		if at > since {
			longest, last = max(longest, at-last), at
		}
	}
	return max(longest, clock(w)-last)
}

// readBack ends the writers on hosts, and reads what was told to be acknowledged; each member must have all of it on its own disk.
func (w *inside) readBack(on ...int) {
	w.Helper()
	for _, i := range on {
		w.ssh(i, "systemctl disable -q "+w.unit()+"; systemctl kill -s KILL "+w.unit()+" || true")
	}
	var keys, endpoints []string
	for _, key := range w.acked() {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	keys = slices.Compact(keys)
	file := filepath.Join(w.dir, w.set+"-acked")
	if err := os.WriteFile(file, []byte(strings.Join(keys, "\n")), 0o600); err != nil {
		w.Fatal(err)
	}
	for i, name := range w.members {
		w.route(i)
		endpoints = append(endpoints, w.member(name).Address+":"+w.port)
	}
	out, err := w.try(hanging, script, "wire", w.tool, "load", "--kind", w.set, "--check", file, "--endpoints", strings.Join(endpoints, ","))
	w.Logf("%s: load: read back: %s", w.set, out)
	var sum struct{ Acked, Lost, Unreadable int }
	if err != nil || json.Unmarshal([]byte(out), &sum) != nil || sum.Acked != len(keys) || sum.Lost != 0 || sum.Unreadable != 0 {
		judge.Broken(w, "acknowledged writes: %d, read back: %s, %v", len(keys), out, err)
	}
	for _, name := range w.members {
		if w.set == "etcd" {
			w.hasAll(name, len(keys))
		}
	}
}
