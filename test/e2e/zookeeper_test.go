package e2e

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// zookeeperArchive is the image of examples/zookeeper/zookeeper.yaml, made by `make image`.
const zookeeperArchive = "../../.cache/images/zookeeper.tar"

func zookeeperName(i int) string {
	return fmt.Sprintf("zookeeper-%d.zookeeper.default.svc.cluster.local", i)
}

// inMember runs a script with the files and network of ZooKeeper's container, as root.
func (l *Lab) inMember(name, script string) (string, error) {
	for _, pid := range l.pidsOf(name) {
		if container, _, first := l.process(pid, name); first && container == "zookeeper" {
			return l.try(hanging, "nsenter", "-t", strconv.Itoa(pid), "-m", "-n", "-p", "bash", "-c", script)
		}
	}
	return "", fmt.Errorf("no process of %s", name)
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

// takeOut is what the operator does for a member whose disk is lost for good. Whether
// it had its effect is seen in the configuration.
func (l *Lab) takeOut(id int) error {
	out, err := l.inMember("zookeeper-0", fmt.Sprintf(`/usr/lib/jvm/java-17-openjdk-amd64/bin/java -cp '/usr/share/java/*' \
  org.apache.zookeeper.ZooKeeperMain -server zookeeper-0.zookeeper:2181 2>&1 <<END
addauth digest super:$(cat /super/password)
reconfig -remove %d
quit
END`, id))
	if err != nil {
		return fmt.Errorf("reconfig: %w: %s", err, out)
	}
	return nil
}

func TestZooKeeperLosesNoAcknowledgedWriteThroughAKillAndScaling(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	if _, err := os.Stat(zookeeperArchive); err != nil {
		t.Fatalf("no ZooKeeper image: %v; run make image", err)
	}
	l.startAll(zookeeperArchive)
	l.stead("apply", "-f", "../../examples/zookeeper/zookeeper.yaml", "--wait", "--timeout", patience)
	l.waitVoters(3)
	stop := l.startLoad("--kind", "zookeeper", "--endpoints", zookeeperEndpoints())

	t.Log("a member is killed")
	was := l.mustMember("zookeeper-2")
	l.killMember("zookeeper-2")
	l.waitReady("zookeeper-2", &was)

	for _, n := range []int{5, 3} {
		t.Logf("scale to %d", n)
		l.stead("scale", "zookeeper", "--replicas", fmt.Sprint(n), "--wait", "--timeout", patience)
		l.waitVoters(n)
	}
	stop()
}
