package e2e

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// kafkaTool asks the cluster from a member of Kafka.
func (l *Lab) kafkaTool(ordinal int, words ...string) (string, error) {
	command := append([]string{"exec", fmt.Sprint("kafka-", ordinal), "-c", "kafka", "--", "bash", "/entry/kafka.sh"}, words...)
	return l.trySteadFor(2*time.Minute, command...)
}

var kafkaLeads = regexp.MustCompile(`LeaderId:\s+(\d+)`)

// leaderKafka is the controller that leads the quorum.
func leaderKafka(l *Lab) (int, error) {
	for i := range 3 {
		out, err := l.kafkaTool(i, "MetadataQuorumCommand", "describe", "--status")
		if said := kafkaLeads.FindStringSubmatch(out); err == nil && said != nil {
			return strconv.Atoi(said[1])
		}
	}
	return 0, fmt.Errorf("no member of Kafka says who leads")
}

// wholeKafka counts the voters of the quorum, and looks that every copy of every partition is in sync.
func wholeKafka(l *Lab, n int) error {
	out, err := l.kafkaTool(0, "MetadataQuorumCommand", "describe", "--replication")
	if err != nil {
		return err
	}
	voters := 0
	for line := range strings.Lines(out) {
		if words := strings.Fields(line); len(words) > 0 && (words[len(words)-1] == "Leader" || words[len(words)-1] == "Follower") {
			voters++
		}
	}
	if voters != n {
		return fmt.Errorf("%d members of Kafka vote, and not %d", voters, n)
	}
	out, err = l.kafkaTool(0, "TopicCommand", "--describe", "--under-replicated-partitions")
	if err == nil && strings.Contains(out, "Partition:") {
		err = fmt.Errorf("copies of Kafka are not in sync: %s", strings.TrimSpace(out))
	}
	return err
}
