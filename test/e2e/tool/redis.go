package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
)

// redisWait is how long Redis may take for one answer, and a replica for a write.
const redisWait = 2 * time.Second

// redisLeader writes to whom a Service says that it leads, and counts a write when a replica has it, too.
type redisLeader struct {
	names  []string
	at     int
	dialer *net.Dialer
	client *redis.Client
}

func newRedis(names []string, dns string, first int) *redisLeader {
	redis.SetLogger(&logging.VoidLogger{}) // the last lines are the result
	return &redisLeader{names: names, at: first % len(names), dialer: dialerBy(dns)}
}

func (r *redisLeader) next() {
	if r.client != nil {
		_ = r.client.Close() // nothing is expected of it any more
		r.client = nil
	}
	r.at = (r.at + 1) % len(r.names)
}

// open is the one connection: WAIT speaks of what was written by its own.
func (r *redisLeader) open() *redis.Client {
	if r.client == nil {
		r.client = openRedis(r.names[r.at], r.dialer)
	}
	return r.client
}

// openRedis makes a client of one connection.
func openRedis(addr string, dialer *net.Dialer) *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr: addr, Dialer: dialer.DialContext, PoolSize: 1, MaxRetries: -1, DialerRetries: 1,
		DialTimeout: redisWait, ReadTimeout: 2 * redisWait, WriteTimeout: redisWait, DisableIdentity: true,
	})
}

func (r *redisLeader) put(ctx context.Context, key, value string) error {
	pipe := r.open().Pipeline()
	pipe.Set(ctx, key, value, 0)
	has := pipe.Do(ctx, "wait", 1, redisWait.Milliseconds())
	if _, err := pipe.Exec(ctx); err != nil {
		return err
	}
	if n, err := has.Int(); err != nil || n < 1 {
		return fmt.Errorf("%d replicas have %s: %w", n, key, err)
	}
	return nil
}

func (r *redisLeader) get(ctx context.Context, key string) (string, error) {
	got, err := r.open().Get(ctx, key).Result()
	if errors.Is(err, redis.Nil) {
		return "", nil
	}
	return got, err
}
