package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// monitor reads a page of a member's monitoring.
func (l *Lab) monitor(set string, ordinal int, page string) (string, error) {
	m, err := l.member(fmt.Sprint(set, "-", ordinal))
	if err != nil {
		return "", err
	}
	return l.inside(time.Minute, "curl", "-s", "-m", "5", "http://"+m.Status.Address+page)
}

// leaderNATS is the leader of the meta group: only it tells of the other servers.
func leaderNATS(l *Lab) (int, error) {
	for i := range 5 {
		if out, err := l.monitor("nats", i, ":8222/jsz"); err == nil && strings.Contains(out, `"replicas"`) {
			return i, nil
		}
	}
	return 0, errors.New("no server leads")
}

// wholeNATS asks the leader for the servers it knows, and each member whether it has caught up.
func wholeNATS(l *Lab, n int) error {
	leader, err := leaderNATS(l)
	if err != nil {
		return err
	}
	out, err := l.monitor("nats", leader, ":8222/jsz")
	if err != nil || strings.Count(out, `"peer":`) != n {
		return fmt.Errorf("%v: not %d servers: %s", err, n, out)
	}
	replicas := map[string]int{}
	for i := range n {
		if out, err := l.monitor("nats", i, ":8222/healthz"); err != nil || !strings.Contains(out, `"status":"ok"`) {
			return fmt.Errorf("nats-%d: %v: %s", i, err, out)
		}
		if err := l.replicasNATS(i, replicas); err != nil {
			return fmt.Errorf("nats-%d: %w", i, err)
		}
	}
	for stream, n := range replicas {
		if n != 3 {
			return fmt.Errorf("%s has %d replicas", stream, n)
		}
	}
	return nil
}

// replicasNATS counts the replicas of streams that a server has, and fails when it does not write before it acknowledges, or when
// one lacks a message: none is ever deleted. (A server calls itself healthy then, and may lead the stream.)
func (l *Lab) replicasNATS(ordinal int, replicas map[string]int) error {
	out, err := l.monitor("nats", ordinal, ":8222/jsz?acc=APP&streams=1")
	if err != nil {
		return err
	}
	var server struct {
		Config struct {
			Always bool `json:"sync_always"`
		}
		Accounts []struct {
			Streams []struct {
				Name  string
				State struct {
					Messages uint64
					First    uint64 `json:"first_seq"`
					Last     uint64 `json:"last_seq"`
				}
			} `json:"stream_detail"`
		} `json:"account_details"`
	}
	if err := json.Unmarshal([]byte(out), &server); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	if !server.Config.Always {
		return errors.New("it acknowledges what is not on its disk yet")
	}
	for _, a := range server.Accounts {
		for _, s := range a.Streams {
			if s.State.Messages != s.State.Last || s.State.First > 1 {
				return fmt.Errorf("%s has %+v", s.Name, s.State)
			}
			replicas[s.Name]++
		}
	}
	return nil
}

// rabbitmq evaluates an expression of Erlang in the first member that answers.
func (l *Lab) rabbitmq(expression string) (out string, err error) {
	for i := range 3 {
		out, err = l.trySteadFor(time.Minute, "exec", fmt.Sprint("rabbitmq-", i), "-c", "rabbitmq", "--", "bash", "-c",
			`RABBITMQ_USE_LONGNAME=true HOME=/data timeout 30 rabbitmqctl -q -n "rabbit@$STEAD_FQDN" eval "$0"`, expression)
		if err == nil {
			return strings.TrimSpace(out), nil
		}
	}
	return "", fmt.Errorf("%w: %s", err, out)
}

// leaderRabbitMQ leads the queue that is written to.
func leaderRabbitMQ(l *Lab) (int, error) {
	out, err := l.rabbitmq(`hd([amqqueue:get_pid(Q) || Q <- rabbit_amqqueue:list()]).`)
	var ordinal int
	if _, rest, found := strings.Cut(out, "rabbit@rabbitmq-"); err == nil && found {
		_, err = fmt.Sscanf(rest, "%d", &ordinal)
	} else {
		err = fmt.Errorf("no queue has a leader: %s, %w", out, err)
	}
	return ordinal, err
}

// wholeRabbitMQ compares the nodes that the cluster has, that run, and the least replicas of a queue.
func wholeRabbitMQ(l *Lab, n int) error {
	out, err := l.rabbitmq(`{length(rabbit_nodes:all()), length(rabbit_nodes:all_running()),
lists:all(fun(Q) -> length(maps:get(nodes, amqqueue:get_type_state(Q))) >= 3 end, rabbit_amqqueue:list())}.`)
	if want := fmt.Sprintf("{%d,%d,true}", n, n); err == nil && out != want {
		err = fmt.Errorf("nodes, running nodes and whether queues have three replicas: %s, want %s", out, want)
	}
	return err
}

// leaderRedis is whom the Service of the leader leads to.
func leaderRedis(l *Lab) (int, error) {
	at, err := l.dig("redis-leader.default.svc.cluster.local")
	for i := range 5 {
		if m, err := l.member(fmt.Sprint("redis-", i)); err == nil && at != "" && m.Status.Address == at {
			return i, nil
		}
	}
	return 0, fmt.Errorf("the Service leads to %q, %w", at, err)
}

// wholeRedis asks each sentinel how many replicas and sentinels it knows beside the leader and itself.
func wholeRedis(l *Lab, n int) error {
	for i := range n {
		name := fmt.Sprint("redis-", i)
		out, err := l.trySteadFor(time.Minute, "exec", name, "-c", "redis", "--", "redis-cli", "-p", "26379", "sentinel", "master", "redis")
		lines := strings.Split(out, "\n")
		for _, field := range []string{"num-slaves", "num-other-sentinels"} {
			at := slices.Index(lines, field)
			if err != nil || at < 0 || lines[at+1] != fmt.Sprint(n-1) {
				return fmt.Errorf("the sentinel of %s knows not %s of %d: %s, %w", name, field, n-1, out, err)
			}
		}
	}
	_, err := leaderRedis(l)
	return err
}
