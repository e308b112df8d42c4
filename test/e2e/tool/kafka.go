package main

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// kafkaTopic has a partition for each of three members to lead.
const kafkaTopic = "load"

// kafkaPatience is longer than Kafka takes to elect leaders for a member that is gone (9 s); kafkaAll is for all records.
const (
	kafkaPatience = 15 * time.Second
	kafkaAll      = 3 * time.Minute
)

// kafka writes records with acks=all. A topic cannot be asked for a key: the first one who reads takes all records.
type kafka struct {
	names  []string
	dialer *net.Dialer
	client *kgo.Client
	made   bool // the topic is there
	read   *kafkaRead
}

// kafkaRead is what all readers know of the topic.
type kafkaRead struct {
	sync.Mutex
	held map[string]string // nil: not read yet
}

// newKafka makes writers and readers of one topic.
func newKafka(names []string, dns string) func(first int) keys {
	read := &kafkaRead{}
	return func(int) keys { return &kafka{names: names, dialer: dialerBy(dns), read: read} }
}

// next begins with a client that knows nothing, as an application does that is started again.
func (k *kafka) next() {
	if k.client != nil {
		k.client.Close()
		k.client = nil
	}
}

// open makes a client, which finds the leader of each partition by itself, with options beside the usual ones.
func (k *kafka) open(options ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(k.names...), kgo.Dialer(k.dialer.DialContext), kgo.DefaultProduceTopic(kafkaTopic),
		kgo.RequiredAcks(kgo.AllISRAcks()), kgo.ProducerLinger(0), kgo.MetadataMinAge(250 * time.Millisecond),
		kgo.RecordDeliveryTimeout(kafkaPatience), kgo.RetryTimeout(kafkaPatience), kgo.RequestTimeoutOverhead(5 * time.Second),
	}, options...)...)
}

// create makes the topic, if nobody did: with three copies, of which two acknowledge (min.insync.replicas of the example).
func (k *kafka) create(ctx context.Context, c *kgo.Client) error {
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = kafkaTopic, 3, 3
	request := kmsg.NewPtrCreateTopicsRequest()
	request.Topics, request.TimeoutMillis = append(request.Topics, topic), int32(kafkaPatience.Milliseconds())
	answer, err := request.RequestWith(ctx, c)
	if err != nil {
		return err
	}
	for _, t := range answer.Topics {
		if err := kerr.ErrorForCode(t.ErrorCode); err != nil && !errors.Is(err, kerr.TopicAlreadyExists) {
			return err
		}
	}
	k.made = true
	return nil
}

func (k *kafka) put(ctx context.Context, key, value string) (err error) {
	ctx, cancel := context.WithTimeout(ctx, kafkaPatience)
	defer cancel()
	if k.client == nil {
		if k.client, err = k.open(); err != nil {
			return err
		}
	}
	if !k.made {
		if err := k.create(ctx, k.client); err != nil {
			return err
		}
	}
	return k.client.ProduceSync(ctx, &kgo.Record{Key: []byte(key), Value: []byte(value)}).FirstErr()
}

func (k *kafka) get(ctx context.Context, key string) (string, error) {
	k.read.Lock()
	defer k.read.Unlock()
	if k.read.held == nil {
		held, err := k.all(ctx)
		if err != nil {
			return "", err
		}
		k.read.held = held
	}
	return k.read.held[key], nil
}

// all reads every record from the first to the one that was the last at the beginning.
func (k *kafka) all(ctx context.Context) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, kafkaAll)
	defer cancel()
	c, err := k.open(kgo.ConsumeTopics(kafkaTopic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		return nil, err
	}
	defer c.Close()
	left, err := k.ends(ctx, c)
	if err != nil {
		return nil, err
	}
	held := map[string]string{}
	for len(left) > 0 {
		fetched := c.PollFetches(ctx)
		if err := fetched.Err0(); err != nil {
			return nil, err
		}
		fetched.EachRecord(func(r *kgo.Record) {
			held[string(r.Key)] = string(r.Value)
			if end, more := left[r.Partition]; more && r.Offset+1 >= end {
				delete(left, r.Partition)
			}
		})
	}
	return held, nil
}

// ends are the offsets behind the last record of each partition that has one.
func (k *kafka) ends(ctx context.Context, c *kgo.Client) (map[int32]int64, error) {
	topic := kmsg.NewListOffsetsRequestTopic()
	topic.Topic = kafkaTopic
	for i := range int32(3) {
		p := kmsg.NewListOffsetsRequestTopicPartition()
		p.Partition, p.Timestamp = i, -1 // behind the last
		topic.Partitions = append(topic.Partitions, p)
	}
	request := kmsg.NewPtrListOffsetsRequest()
	request.Topics = append(request.Topics, topic)
	ends := map[int32]int64{}
	for _, shard := range c.RequestSharded(ctx, request) {
		if shard.Err != nil {
			return nil, shard.Err
		}
		for _, t := range shard.Resp.(*kmsg.ListOffsetsResponse).Topics {
			for _, p := range t.Partitions {
				if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
					return nil, err
				}
				if p.Offset > 0 {
					ends[p.Partition] = p.Offset
				}
			}
		}
	}
	return ends, nil
}
