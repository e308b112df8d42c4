package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
)

// hops is how often a slot may have moved before a write or a read is given up.
const hops = 5

// redisCluster writes to whichever master has a key's slot, and counts a write when a replica has it, too. It follows the redirections
// by itself, for WAIT speaks of what was written by its own connection.
type redisCluster struct {
	names   []string
	at      int
	dialer  *net.Dialer
	clients map[string]*redis.Client
}

func newRedisCluster(names []string, dns string, first int) *redisCluster {
	redis.SetLogger(&logging.VoidLogger{}) // the last lines are the result
	return &redisCluster{names: names, at: first % len(names), dialer: dialerBy(dns), clients: map[string]*redis.Client{}}
}

func (r *redisCluster) next() {
	for _, c := range r.clients {
		_ = c.Close() // nothing is expected of it any more
	}
	clear(r.clients)
	r.at = (r.at + 1) % len(r.names)
}

func (r *redisCluster) open(addr string) *redis.Client {
	if r.clients[addr] == nil {
		r.clients[addr] = openRedis(addr, r.dialer)
	}
	return r.clients[addr]
}

// follow says a command to one master after the other, as they redirect it.
func (r *redisCluster) follow(ctx context.Context, say func(redis.Pipeliner) func() error) (err error) {
	addr, asking := r.names[r.at], false
	for range hops {
		pipe := r.open(addr).Pipeline()
		if asking {
			pipe.Do(ctx, "asking")
		}
		answer := say(pipe)
		_, _ = pipe.Exec(ctx) // the answer has its error
		if err = answer(); err == nil {
			return nil
		}
		where := strings.Fields(err.Error())
		if len(where) != 3 || where[0] != "MOVED" && where[0] != "ASK" {
			return err
		}
		addr, asking = where[2], where[0] == "ASK"
	}
	return err
}

func (r *redisCluster) put(ctx context.Context, key, value string) error {
	return r.follow(ctx, func(pipe redis.Pipeliner) func() error {
		set := pipe.Set(ctx, key, value, 0)
		has := pipe.Do(ctx, "wait", 1, redisWait.Milliseconds())
		return func() error {
			if err := set.Err(); err != nil {
				return err
			}
			if n, err := has.Int(); err != nil || n < 1 {
				return fmt.Errorf("%d replicas have %s: %w", n, key, err)
			}
			return nil
		}
	})
}

func (r *redisCluster) get(ctx context.Context, key string) (value string, err error) {
	err = r.follow(ctx, func(pipe redis.Pipeliner) func() error {
		got := pipe.Get(ctx, key)
		return func() (err error) {
			value, err = got.Result()
			return err
		}
	})
	if errors.Is(err, redis.Nil) {
		return "", nil
	}
	return value, err
}
