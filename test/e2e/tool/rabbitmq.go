package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// amqpWait is how long RabbitMQ may take for one answer, and allWait for all messages.
const (
	amqpWait = 5 * time.Second
	allWait  = 2 * time.Minute
)

// rabbitQueue writes into a quorum queue with confirms. A queue cannot be asked for a key: the first
// one who reads takes all messages out of it.
type rabbitQueue struct {
	names  []string
	at     int
	dialer *net.Dialer
	net    net.Conn
	conn   *amqp.Connection // on net
	ch     *amqp.Channel
	made   string // the queue that is there
	read   *rabbitRead
}

// rabbitRead is what all readers know of the queue.
type rabbitRead struct {
	sync.Mutex
	held map[string]string
	done bool // it has all
}

// newRabbit makes writers and readers of one queue.
func newRabbit(names []string, dns string) func(first int) keys {
	read := &rabbitRead{held: map[string]string{}}
	return func(first int) keys {
		return &rabbitQueue{names: names, at: first % len(names), dialer: dialerBy(dns), read: read}
	}
}

func (r *rabbitQueue) next() {
	if r.conn != nil {
		_ = r.conn.CloseDeadline(time.Now().Add(time.Second)) // nothing is expected of it any more
		r.conn = nil
	}
	r.at = (r.at + 1) % len(r.names)
}

func (r *rabbitQueue) connect(ctx context.Context) (err error) {
	if r.conn != nil {
		return nil
	}
	// Names are resolved here: the library knows none of them.
	conn, err := r.dialer.DialContext(ctx, "tcp", r.names[r.at])
	if err != nil {
		return err
	}
	if err := conn.SetDeadline(time.Now().Add(amqpWait)); err != nil {
		return err
	}
	r.net = conn
	r.conn, err = amqp.Open(conn, amqp.Config{
		SASL: []amqp.Authentication{&amqp.PlainAuth{Username: "app", Password: "app"}}, Vhost: "/", Heartbeat: amqpWait,
	})
	if err != nil {
		r.conn = nil
		return errors.Join(err, conn.Close())
	}
	if r.ch, err = r.conn.Channel(); err == nil {
		err = r.ch.Confirm(false)
	}
	return err
}

// bounded breaks the connection when ctx ends, until it is called off: the library waits for some answers without end.
func (r *rabbitQueue) bounded(ctx context.Context) (off func() bool) {
	conn := r.net
	return context.AfterFunc(ctx, func() { _ = conn.Close() })
}

// queueOf is the queue of a key "prefix/writer/number".
func queueOf(key string) string { return key[:strings.IndexByte(key, '/')] }

func (r *rabbitQueue) put(ctx context.Context, key, value string) error {
	ctx, cancel := context.WithTimeout(ctx, amqpWait)
	defer cancel()
	if err := r.connect(ctx); err != nil {
		return err
	}
	defer r.bounded(ctx)()
	if queue := queueOf(key); r.made != queue {
		if _, err := r.ch.QueueDeclare(queue, true, false, false, false, amqp.Table{"x-queue-type": "quorum"}); err != nil {
			return err
		}
		r.made = queue
	}
	confirmed, err := r.ch.PublishWithDeferredConfirm("", queueOf(key), true, false,
		amqp.Publishing{DeliveryMode: amqp.Persistent, MessageId: key, Body: []byte(value)})
	if err != nil {
		return err
	}
	if ok, err := confirmed.WaitContext(ctx); err != nil || !ok {
		return fmt.Errorf("not confirmed: %w", err)
	}
	return nil
}

func (r *rabbitQueue) get(ctx context.Context, key string) (string, error) {
	r.read.Lock()
	defer r.read.Unlock()
	if !r.read.done {
		if err := r.all(ctx, queueOf(key), r.read.held); err != nil {
			return "", err
		}
		r.read.done = true
	}
	return r.read.held[key], nil
}

// all takes every message out of the queue and adds it to held, which outlasts a try that failed: a quorum queue
// gives a reader 2000 at most that were not acknowledged.
func (r *rabbitQueue) all(ctx context.Context, queue string, held map[string]string) error {
	ctx, cancel := context.WithTimeout(ctx, allWait)
	defer cancel()
	if err := r.connect(ctx); err != nil {
		return err
	}
	defer r.next()
	defer r.bounded(ctx)()
	messages, err := r.ch.ConsumeWithContext(ctx, queue, "", false, false, false, false, nil)
	if err != nil {
		return err
	}
	for {
		select {
		case m, open := <-messages:
			if !open {
				return fmt.Errorf("broken off after %d messages", len(held))
			}
			held[m.MessageId] = string(m.Body)
			if err := m.Ack(false); err != nil {
				return err
			}
		case <-time.After(amqpWait):
			left, err := r.ch.QueueDeclarePassive(queue, true, false, false, false, nil)
			if err == nil && left.Messages > 0 {
				err = fmt.Errorf("%d messages are left", left.Messages)
			}
			return err
		}
	}
}
