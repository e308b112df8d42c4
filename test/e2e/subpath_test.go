package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

const escapeSet = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: evil}
spec:
  replicas: 1
  selector: {matchLabels: {app: evil}}
  template:
    metadata: {labels: {app: evil}}
    spec:
      terminationGracePeriodSeconds: 2
      containers:
      - name: main
        image: stead.local/tool:1
        command: [/box, harm, escape, TARGET]
        volumeMounts:
        - {name: data, mountPath: /data}
        - {name: data, mountPath: /sub, subPath: sub}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}
`

// TestAMemberIsNotLedOutOfItsVolumeByALinkOfItsOwn: its program plants a link in place of
// the directory that its subPath names, and ends. It is not started again and
// the cause says why; nothing of it stays mounted.
func TestAMemberIsNotLedOutOfItsVolumeByALinkOfItsOwn(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	target := l.path("of-the-host")
	if err := os.Mkdir(target, 0o777); err != nil {
		t.Fatal(err)
	}
	l.startServer()
	l.startAgent()
	l.stead("image", "load", l.toolArchive())
	l.apply("evil", strings.ReplaceAll(escapeSet, "TARGET", target))
	l.eventually(time.Minute, "its second run is refused, with a reason", func() error {
		if left, err := os.ReadDir(target); err != nil || len(left) > 0 {
			t.Fatalf("the member wrote into a directory of the host: %v, %v", left, err)
		}
		m, err := l.member("evil-0")
		if err == nil && (m.Status.Cause != "StartError" || !strings.Contains(m.Status.Message, "a symbolic link in the volume leads out of it")) {
			err = fmt.Errorf("%+v", m.Status)
		}
		return err
	})
	l.stead("delete", "set", "evil", "--wait", "--timeout", patience)
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(mounts), l.Dir+"/run/subpath") {
		t.Errorf("mounts of it are left:\n%s", mounts)
	}
}
