package e2e

import (
	"fmt"
	"strings"
	"time"
)

// nodeOfRedis is a line of CLUSTER NODES.
type nodeOfRedis struct {
	id, host, flags, master string
	slots                   bool
}

// nodesOfRedis are all nodes that a member of redis-cluster knows.
func (l *Lab) nodesOfRedis(ordinal int) (list []nodeOfRedis, err error) {
	out, err := l.trySteadFor(time.Minute, "exec", fmt.Sprint("redis-cluster-", ordinal), "-c", "redis", "--", "redis-cli", "cluster", "nodes")
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	for line := range strings.Lines(out) {
		f := strings.Fields(line)
		if len(f) < 8 {
			return nil, fmt.Errorf("redis-cluster-%d says %q", ordinal, out)
		}
		_, host, _ := strings.Cut(f[1], ",")
		list = append(list, nodeOfRedis{id: f[0], host: host, flags: strings.TrimPrefix(f[2], "myself,"), master: f[3], slots: len(f) > 8})
	}
	return list, nil
}

// wholeRedisCluster fails until each of n members knows n nodes that are up, half of them masters with slots and a replica each, and
// serves all slots.
func wholeRedisCluster(l *Lab, n int) error {
	for i := range n {
		nodes, err := l.nodesOfRedis(i)
		if err != nil {
			return err
		}
		masters, replicas := 0, map[string]int{}
		for _, node := range nodes {
			switch {
			case node.flags == "master" && node.slots:
				masters++
			case node.flags == "slave":
				replicas[node.master]++
			default:
				return fmt.Errorf("redis-cluster-%d sees %+v", i, node)
			}
		}
		if len(nodes) != n || masters != n/2 || len(replicas) != n/2 {
			return fmt.Errorf("redis-cluster-%d sees %+v; want %d nodes, half of them masters with a replica", i, nodes, n)
		}
		out, err := l.trySteadFor(time.Minute, "exec", fmt.Sprint("redis-cluster-", i), "-c", "redis", "--", "redis-cli", "cluster", "info")
		if err != nil || !strings.Contains(out, "cluster_state:ok") || !strings.Contains(out, "cluster_slots_assigned:16384") {
			return fmt.Errorf("redis-cluster-%d: %w: %s", i, err, out)
		}
	}
	return nil
}

// oneOfRedis is the first initial member of which the first that answers says that it has these flags.
func (l *Lab) oneOfRedis(flags string) (ordinal int, err error) {
	var nodes []nodeOfRedis
	for i := range 6 {
		if nodes, err = l.nodesOfRedis(i); err == nil {
			break
		}
	}
	for ordinal = range 6 {
		for _, node := range nodes {
			if node.flags == flags && strings.HasPrefix(node.host, fmt.Sprintf("redis-cluster-%d.", ordinal)) {
				return ordinal, nil
			}
		}
	}
	return 0, fmt.Errorf("none is %s in %+v, %w", flags, nodes, err)
}

func leaderRedisCluster(l *Lab) (int, error)   { return l.oneOfRedis("master") }
func followerRedisCluster(l *Lab) (int, error) { return l.oneOfRedis("slave") }

// pairRedisCluster pairs masters and replicas of different hosts.
func pairRedisCluster(l *Lab) error {
	out, err := l.trySteadFor(10*time.Minute, "exec", "redis-cluster-0", "-c", "redis", "--", "bash", "/entry/redis-cluster.sh", "grow")
	if err != nil {
		err = fmt.Errorf("%w: %s", err, out)
	}
	return err
}
