package e2e

import (
	"os"
	"strings"
	"testing"
	"time"
)

const classSet = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: NAME}
spec:
  replicas: 1
  selector: {matchLabels: {app: NAME}}
  template:
    metadata: {labels: {app: NAME}}
    spec:
      terminationGracePeriodSeconds: 2
      containers:
      - name: main
        image: stead.local/tool:1
        command: [/box, show]
        args: [--write, /data/mine, /data/mine]
        volumeMounts: [{name: data, mountPath: /data}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], storageClassName: CLASS, resources: {requests: {storage: 1Mi}}}
`

func TestVolumesLieInTheDirectoryOfTheirStorageClass(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	ssd := l.path("ssd")
	if err := os.Mkdir(ssd, 0o755); err != nil {
		t.Fatal(err)
	}
	l.startServer("--map-class", "gp3=local")
	l.startAgent("--storage-class", "ssd="+ssd)
	l.stead("image", "load", l.toolArchive())
	of := func(name, class string) string {
		return strings.NewReplacer("NAME", name, "CLASS", class).Replace(classSet)
	}
	l.apply("fast", of("fast", "ssd"), "--wait", "--timeout", patience)
	l.apply("plain", of("plain", "gp3"), "--wait", "--timeout", patience)
	for _, file := range []string{ssd + "/default/fast/data-0/data/mine", l.path("agent/volumes/default/plain/data-0/data/mine")} {
		l.eventually(time.Minute, "the member writes to its volume", func() error {
			_, err := os.Stat(file)
			return err
		})
	}
	list := l.stead("volume", "ls")
	for _, want := range [][]string{{"data-fast-0", " ssd "}, {"data-plain-0", " local "}} {
		if line := lineWith(list, want[0]); !strings.Contains(line, want[1]) {
			t.Errorf("volume ls tells %q of %s, want class%sin it", line, want[0], want[1])
		}
	}
	file := l.path("gold.yaml")
	if err := os.WriteFile(file, []byte(of("rich", "gold")), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := l.trySteadFor(time.Minute, "apply", "-f", file)
	if err == nil || !strings.Contains(out, `no node has a storage class "gold"; write one of local, ssd,`) {
		t.Errorf("an unknown class: %v, %s", err, out)
	}
}

// lineWith is the first line that holds a text.
func lineWith(text, part string) string {
	for line := range strings.Lines(text) {
		if strings.Contains(line, part) {
			return line
		}
	}
	return ""
}
