package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

func apiOf(i int) string { return address(i) + ":7443" }

// installServers makes a cluster of the hosts, each with a server that has a part of the store and an agent, of one package, as
// docs/OPERATIONS.md says ("Three servers, without another etcd"), and loads the images named.
func (h *hosts) installServers(deb string, archives ...string) {
	h.Helper()
	h.deb = deb
	h.each(h.installStead)
	var all []string
	for i := 1; i <= h.n; i++ {
		all = append(all, apiOf(i))
		options := fmt.Sprintf("--name %s --listen %s --peer-listen %s:7444", host(i), apiOf(i), address(i))
		if i > 1 {
			h.putToken(i, "server-token", h.ssh(1, "stead token create --for-server "+host(i)))
			options += " --join " + server + " --token-file /root/server-token"
		}
		h.ssh(i, "echo STEAD_SERVER_OPTIONS="+options+" > /etc/default/stead && systemctl enable -q --now stead-server")
	}
	servers := strings.Join(all, ",")
	h.people = filepath.Join(h.dir, "ann.json")
	ann := h.ssh(1, "stead client create --name ann --servers "+servers+" -o /root/ann.json && cat /root/ann.json")
	if err := os.WriteFile(h.people, []byte(ann[strings.Index(ann, "{"):]), 0o600); err != nil {
		h.Fatal(err)
	}
	h.quorate()
	for i := 1; i <= h.n; i++ {
		h.putToken(i, "token", h.ssh(1, "stead token create --node "+host(i)))
		h.ssh(i, "echo STEAD_AGENT_OPTIONS=--address "+address(i)+" --join "+servers+" --token-file /root/token >> /etc/default/stead && "+
			"systemctl enable -q --now stead-agent")
	}
	h.connected()
	h.startWitness()
	archives = append(archives, h.toolArchive())
	for i := 1; i <= h.n; i++ {
		h.loadImages(i, archives...)
	}
}

// putToken writes a token into a file of root's home.
func (h *hosts) putToken(i int, name, token string) {
	h.Helper()
	h.ssh(i, "umask 077 && echo "+strings.TrimSpace(token)+" > /root/"+name)
}

// server is a line of `stead server ls`.
type serverLine struct{ votes, leads, reachable bool }

func (h *hosts) tryServers() (map[int]serverLine, string, error) {
	out, err := h.try(looking, script, "wire", steadBin, "--config", h.people, "server", "ls")
	all := map[int]serverLine{}
	for i := 1; i <= h.n; i++ {
		if f := strings.Fields(lineWith(out, host(i)+" ")); len(f) > 5 {
			all[i] = serverLine{votes: f[3] == "yes", leads: f[4] == "yes", reachable: f[5] == "yes"}
		}
	}
	return all, out, err
}

// quorate waits until the servers named, or all, vote and are reachable, and one leads.
func (h *hosts) quorate(which ...int) {
	h.Helper()
	if len(which) == 0 {
		for i := 1; i <= h.n; i++ {
			which = append(which, i)
		}
	}
	h.eventually(fmt.Sprintf("the servers %v vote and are reachable", which), func() error {
		all, out, err := h.tryServers()
		leads := false
		for _, i := range which {
			if err == nil && (!all[i].votes || !all[i].reachable) {
				err = fmt.Errorf("%s does not", host(i))
			}
			leads = leads || all[i].leads
		}
		if err == nil && !leads {
			err = fmt.Errorf("none leads")
		}
		if err != nil {
			return fmt.Errorf("%w:\n%s", err, out)
		}
		return nil
	})
}

// leader is the host whose server leads.
func (h *hosts) leader() (i int) {
	h.Helper()
	h.eventually("a server leads", func() error {
		all, out, err := h.tryServers()
		for n, s := range all {
			if s.leads {
				i = n
			}
		}
		if err == nil && i == 0 {
			err = fmt.Errorf("none leads")
		}
		if err != nil {
			return fmt.Errorf("%w:\n%s", err, out)
		}
		return nil
	})
	return i
}

// storing does something while a person changes an object again and again, and returns the longest time in which no change was taken.
func (h *hosts) storing(do func()) (longest time.Duration) {
	h.Helper()
	stop, done := make(chan struct{}), make(chan struct{})
	file := filepath.Join(h.dir, "beat.yaml")
	taken, said := 0, ""
	go func() {
		defer close(done)
		last := time.Now()
		for n := 0; ; n++ {
			text := fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: beat}\ndata: {beat: %q}\n", strconv.Itoa(n))
			err := os.WriteFile(file, []byte(text), 0o600)
			if err == nil {
				said, err = h.try(looking/2, script, "wire", steadBin, "--config", h.people, "apply", "-f", file)
			}
			longest = max(longest, time.Since(last))
			if err == nil {
				last, taken = time.Now(), taken+1
			}
			select {
			case <-stop:
				return
			case <-time.After(time.Second):
			}
		}
	}()
	defer func() {
		close(stop)
		<-done
		if taken == 0 {
			h.Errorf("no change was taken: %s", said)
		}
	}()
	do()
	return longest
}
