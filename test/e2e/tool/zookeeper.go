package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"
)

// What is used of ZooKeeper's protocol: requests by number, errors, and bounds.
const (
	zkCreate = 1
	zkGet    = 4
	zkSync   = 9

	zkNoNode  = -101
	zkAllOps  = 31      // the permissions of an access list
	zkAnswer  = 1 << 20 // bytes
	zkTimeout = 3 * time.Second
)

// zookeeper speaks ZooKeeper's protocol with one session a connection.
type zookeeper struct {
	names  []string
	at     int
	dialer *net.Dialer
	conn   net.Conn
	xid    int32
	zxid   int64 // the newest seen: no member behind it is taken
}

func newZookeeper(names []string, dns string, first int) *zookeeper {
	return &zookeeper{names: names, at: first % len(names), dialer: dialerBy(dns)}
}

func (z *zookeeper) next() {
	z.drop()
	z.at = (z.at + 1) % len(z.names)
}

func (z *zookeeper) drop() {
	if z.conn != nil {
		_ = z.conn.Close() // nothing is expected of it any more
		z.conn = nil
	}
}

// path is a key as a node right below the root.
func path(key string) string { return "/" + strings.ReplaceAll(key, "/", "-") }

func (z *zookeeper) put(ctx context.Context, key, value string) error {
	var b jute
	b.text(path(key))
	b.text(value)
	b.number(1) // access: anyone, anything
	b.number(zkAllOps)
	b.text("world")
	b.text("anyone")
	b.number(0) // a persistent node
	_, code, err := z.call(ctx, zkCreate, b.Bytes())
	if err == nil && code != 0 {
		err = fmt.Errorf("create %s: code %d", key, code)
	}
	return err
}

// get reads after a sync: all that was acknowledged before is seen.
func (z *zookeeper) get(ctx context.Context, key string) (string, error) {
	var b jute
	b.text(path(key))
	_, code, err := z.call(ctx, zkSync, b.Bytes())
	if err != nil {
		return "", err
	}
	if code != 0 {
		return "", fmt.Errorf("sync %s: code %d", key, code)
	}
	b.WriteByte(0) // no watch
	body, code, err := z.call(ctx, zkGet, b.Bytes())
	switch {
	case err != nil:
		return "", err
	case code == zkNoNode:
		return "", nil
	case code != 0:
		return "", fmt.Errorf("get %s: code %d", key, code)
	}
	return cutText(body)
}

// call sends one request and returns the body and code of its answer.
func (z *zookeeper) call(ctx context.Context, kind int32, body []byte) ([]byte, int32, error) {
	if err := z.connect(ctx); err != nil {
		return nil, 0, err
	}
	z.xid++
	var b jute
	b.number(z.xid)
	b.number(kind)
	b.Write(body)
	answer, err := z.exchange(b.Bytes())
	if err == nil && (len(answer) < 16 || int32(binary.BigEndian.Uint32(answer)) != z.xid) {
		err = errors.New("an answer to nothing asked")
	}
	if err != nil {
		z.drop()
		return nil, 0, err
	}
	z.zxid = max(z.zxid, int64(binary.BigEndian.Uint64(answer[4:])))
	return answer[16:], int32(binary.BigEndian.Uint32(answer[12:])), nil
}

// connect opens a session, unless there is one.
func (z *zookeeper) connect(ctx context.Context) (err error) {
	if z.conn != nil {
		return nil
	}
	if z.conn, err = z.dialer.DialContext(ctx, "tcp", z.names[z.at]); err != nil {
		return err
	}
	var b jute
	b.number(0) // protocol
	b.long(z.zxid)
	b.number(10_000) // milliseconds of the session
	b.long(0)        // a new one
	b.text(string(make([]byte, 16)))
	b.WriteByte(0) // not read-only
	if _, err := z.exchange(b.Bytes()); err != nil {
		z.drop()
		return fmt.Errorf("open a session: %w", err)
	}
	return nil
}

// exchange sends one frame and receives one.
func (z *zookeeper) exchange(body []byte) ([]byte, error) {
	if err := z.conn.SetDeadline(time.Now().Add(zkTimeout)); err != nil {
		return nil, err
	}
	if _, err := z.conn.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)); err != nil {
		return nil, err
	}
	head := make([]byte, 4)
	if _, err := io.ReadFull(z.conn, head); err != nil {
		return nil, err
	}
	size := binary.BigEndian.Uint32(head)
	if size > zkAnswer {
		return nil, fmt.Errorf("an answer of %d bytes", size)
	}
	answer := make([]byte, size)
	_, err := io.ReadFull(z.conn, answer)
	return answer, err
}

// jute is ZooKeeper's encoding, as far as it is needed.
type jute struct{ bytes.Buffer }

func (b *jute) number(n int32) { b.Write(binary.BigEndian.AppendUint32(nil, uint32(n))) }
func (b *jute) long(n int64)   { b.Write(binary.BigEndian.AppendUint64(nil, uint64(n))) }

func (b *jute) text(s string) {
	b.number(int32(len(s)))
	b.WriteString(s)
}

// cutText reads the text at the beginning of b.
func cutText(b []byte) (string, error) {
	if len(b) < 4 || uint64(len(b)-4) < uint64(binary.BigEndian.Uint32(b)) {
		return "", errors.New("an answer cut short")
	}
	return string(b[4 : 4+binary.BigEndian.Uint32(b)]), nil
}
