package main

import (
	"context"
	"errors"
	"net"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// natsWait is how long one question to NATS may take.
const natsWait = 3 * time.Second

// natsStreams writes into a stream of three replicas for each writer, a subject for each key.
type natsStreams struct {
	urls   []string
	at     int
	dialer natsDialer
	conn   *nats.Conn
	js     jetstream.JetStream
	made   bool // the stream is there
}

// natsDialer resolves names as the load does.
type natsDialer struct{ *net.Dialer }

// SkipTLSHandshake implements what the library asks of a dialer: names are not resolved by it.
func (natsDialer) SkipTLSHandshake() bool { return false }

func newNATS(names []string, dns string, first int) *natsStreams {
	return &natsStreams{urls: names, at: first % len(names), dialer: natsDialer{dialerBy(dns)}}
}

func (n *natsStreams) next() {
	if n.conn != nil {
		n.conn.Close()
		n.conn = nil
	}
	n.at = (n.at + 1) % len(n.urls)
}

func (n *natsStreams) connect() (err error) {
	if n.conn != nil {
		return nil
	}
	n.conn, err = nats.Connect("nats://"+n.urls[n.at], nats.SetCustomDialer(n.dialer), nats.SkipHostLookup(),
		nats.NoReconnect(), nats.Timeout(natsWait))
	if err != nil {
		n.conn = nil
		return err
	}
	n.js, err = jetstream.New(n.conn)
	return err
}

// place is the stream and the subject of a key "prefix/writer/number".
func natsPlace(key string) (stream, subject string) {
	subject = strings.ReplaceAll(key, "/", ".")
	return strings.ReplaceAll(subject[:strings.LastIndexByte(subject, '.')], ".", "-"), subject
}

func (n *natsStreams) put(ctx context.Context, key, value string) error {
	ctx, cancel := context.WithTimeout(ctx, natsWait)
	defer cancel()
	if err := n.connect(); err != nil {
		return err
	}
	stream, subject := natsPlace(key)
	if !n.made {
		_, err := n.js.CreateStream(ctx, jetstream.StreamConfig{
			Name: stream, Subjects: []string{subject[:strings.LastIndexByte(subject, '.')] + ".>"}, Replicas: 3,
		})
		if err != nil && !errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
			return err
		}
		n.made = true
	}
	_, err := n.js.Publish(ctx, subject, []byte(value), jetstream.WithRetryAttempts(0))
	return err
}

// get asks the leader of the stream.
func (n *natsStreams) get(ctx context.Context, key string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, natsWait)
	defer cancel()
	if err := n.connect(); err != nil {
		return "", err
	}
	name, subject := natsPlace(key)
	stream, err := n.js.Stream(ctx, name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	message, err := stream.GetLastMsgForSubject(ctx, subject)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return string(message.Data), nil
}
