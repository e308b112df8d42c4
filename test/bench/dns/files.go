package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/miekg/dns"
)

const knotConf = `server:
    listen: 127.0.0.1@5300
    rundir: "%[1]s"
    udp-workers: 1
    tcp-workers: 1
    background-workers: 1
database:
    storage: "%[1]s"
zone:
  - domain: cluster.local
    file: "%[1]s/zone"
    zonefile-sync: -1
    journal-content: none
`

const nsdConf = `server:
    server-count: 1
    ip-address: 127.0.0.1@5300
    username: ""
    zonesdir: "%[1]s"
    database: ""
    pidfile: ""
    xfrdfile: "%[1]s/xfrd"
    zonelistfile: "%[1]s/zones"
    cookie-secret-file: ""
    rrl-ratelimit: 0
remote-control:
    control-enable: no
zone:
    name: cluster.local
    zonefile: "%[1]s/zone"
`

// corefile serves the zone from memory; %[2]s is another plugin, or nothing. There is no
// reload of the file and no log.
const corefile = `cluster.local:5300 {
    bind 127.0.0.1
    %[2]s
    file "%[1]s/zone" {
        reload 0
    }
}
`

// files writes zone, questions and the peers' configurations.
func (b *bench) files() error {
	var lines []string
	for _, q := range questions(b.members) {
		lines = append(lines, q.Name+" "+dns.TypeToString[q.Qtype]+"\n")
	}
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
	for name, text := range map[string]string{
		"zone": zoneFile(b.members), "questions": strings.Join(lines, ""),
		"knot.conf": fmt.Sprintf(knotConf, b.dir), "nsd.conf": fmt.Sprintf(nsdConf, b.dir),
		"Corefile": fmt.Sprintf(corefile, b.dir, ""), "Corefile.cache": fmt.Sprintf(corefile, b.dir, "cache"),
	} {
		if err := os.WriteFile(filepath.Join(b.dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// sessionCPU is what all processes of a session have used, user and system. The
// kernel counts in ticks of 10 ms.
func sessionCPU(session int) (time.Duration, error) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return 0, err
	}
	const user, system, sid = 11, 12, 3 // fields behind the name
	var ticks int64
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // ended meanwhile
		}
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		if len(fields) <= system || fields[sid] != fmt.Sprint(session) {
			continue
		}
		for _, i := range []int{user, system} {
			var n int64
			if _, err := fmt.Sscan(fields[i], &n); err != nil {
				return 0, fmt.Errorf("read %s: %w", path, err)
			}
			ticks += n
		}
	}
	return time.Duration(ticks) * 10 * time.Millisecond, nil
}
