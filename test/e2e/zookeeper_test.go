package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// zookeeperArchive is the image of examples/zookeeper.yaml, made by `make image`.
const zookeeperArchive = "../../.cache/images/zookeeper.tar"

func zookeeperName(i int) string {
	return fmt.Sprintf("zookeeper-%d.zookeeper.default.svc.cluster.local", i)
}

// inMember runs a script with the member's files and network, as root.
func (l *Lab) inMember(name, script string) (string, error) {
	pids := l.pidsOf(name)
	if len(pids) == 0 {
		return "", fmt.Errorf("no process of %s", name)
	}
	return l.try(30*time.Second, "nsenter", "-t", strconv.Itoa(pids[0]), "-m", "-n", "-p", "bash", "-c", script)
}

// voters counts the members that have a vote, as the leader's configuration says.
func (l *Lab) voters() (int, error) {
	const script = `for i in 0 1 2 3 4; do
  if exec 3<>/dev/tcp/zookeeper-$i.zookeeper/2181 && printf srvr >&3 && grep -q '^Mode: leader' <&3; then
    exec 3<>/dev/tcp/zookeeper-$i.zookeeper/2181 && printf conf >&3 && grep -o 'server\.[0-9]*=.*' <&3
    exit 0
  fi
done 2>/dev/null
exit 1`
	out, err := l.inMember("zookeeper-0", script)
	return strings.Count(out, ":participant"), err
}

func (l *Lab) waitVoters(n int) {
	l.t.Helper()
	l.eventually(time.Minute, fmt.Sprintf("%d members have a vote", n), func() error {
		got, err := l.voters()
		if err == nil && got != n {
			err = fmt.Errorf("%d members have a vote", got)
		}
		return err
	})
}

// takeOut is what the operator does for a member whose disk is lost for good.
func (l *Lab) takeOut(id int) {
	l.t.Helper()
	out, err := l.inMember("zookeeper-0", fmt.Sprintf(`/usr/lib/jvm/java-17-openjdk-amd64/bin/java -cp '/usr/share/java/*' \
  org.apache.zookeeper.ZooKeeperMain -server zookeeper-0.zookeeper:2181 2>&1 <<END
addauth digest super:$(cat /super/password)
reconfig -remove %d
quit
END`, id))
	if err != nil {
		l.t.Fatalf("reconfig: %v\n%s", err, out)
	}
}

func TestZooKeeperLosesNoAcknowledgedWriteThroughEveryFault(t *testing.T) {
	l := newLab(t)
	if _, err := os.Stat(zookeeperArchive); err != nil {
		t.Fatalf("no ZooKeeper image: %v; run make image", err)
	}
	l.startAll(zookeeperArchive)
	l.stead("apply", "-f", "../../examples/zookeeper.yaml", "--wait", "--timeout", "2m")
	l.waitVoters(3)
	var endpoints []string
	for i := range 3 {
		endpoints = append(endpoints, zookeeperName(i)+":2181")
	}
	stop := l.startLoad("--kind", "zookeeper", "--endpoints", strings.Join(endpoints, ","))

	t.Log("a member is killed")
	was := l.mustMember("zookeeper-2")
	l.killMember("zookeeper-2")
	l.waitReady("zookeeper-2", &was)

	for _, n := range []int{5, 3} {
		t.Logf("scale to %d", n)
		l.stead("scale", "zookeeper", "--replicas", fmt.Sprint(n), "--wait", "--timeout", "3m")
		l.waitVoters(n)
	}

	t.Log("a disk is wiped: the member keeps away until its vote is taken back, then copies the data")
	disk := l.path("agent/volumes/default/zookeeper/data-1/data/zookeeper")
	if _, err := os.Stat(filepath.Join(disk, "version-2")); err != nil {
		t.Fatal(err)
	}
	was = l.mustMember("zookeeper-1")
	if err := os.RemoveAll(disk); err != nil { // before the next run can look at it
		t.Fatal(err)
	}
	l.killMember("zookeeper-1")
	l.eventually(time.Minute, "the member says why it does not start", func() error {
		out, err := l.trySteadFor(5*time.Second, "logs", "zookeeper-1", "--tail", "3")
		if err == nil && !strings.Contains(out, "refused: the disk is empty, but was used before") {
			err = fmt.Errorf("%s", out)
		}
		return err
	})
	l.takeOut(2)
	l.waitReady("zookeeper-1", &was)
	l.waitVoters(3)

	t.Log("all are killed at once")
	before := map[string]member{}
	for i := range 3 {
		name := fmt.Sprintf("zookeeper-%d", i)
		before[name] = l.mustMember(name)
	}
	for name := range before {
		l.killMember(name)
	}
	for name, was := range before {
		l.waitReady(name, &was)
	}
	stop()
}
