package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/jackc/pgx/v5"
)

// postgres writes rows to the member of PostgreSQL that leads, and reads what was acknowledged from there.
type postgres struct {
	names  []string
	at     int
	dialer *net.Dialer
	conn   *pgx.Conn
	ready  bool // the table is there
}

func newPostgres(names []string, dns string, first int) *postgres {
	return &postgres{names: names, at: first % len(names), dialer: dialerBy(dns)}
}

func (p *postgres) next() {
	p.at = (p.at + 1) % len(p.names)
	if p.conn != nil {
		_ = p.conn.Close(context.Background()) // another member is asked from now on
		p.conn = nil
	}
}

// open connects to the present member, with a table to write to.
func (p *postgres) open(ctx context.Context) (*pgx.Conn, error) {
	if p.conn == nil || p.conn.IsClosed() {
		config, err := pgx.ParseConfig(fmt.Sprintf("postgres://app:change-me@%s/app?sslmode=disable&target_session_attrs=read-write&connect_timeout=2", p.names[p.at]))
		if err != nil {
			return nil, err
		}
		config.DialFunc = p.dialer.DialContext
		// The dialer resolves: at this member's name server.
		config.LookupFunc = func(_ context.Context, host string) ([]string, error) { return []string{host}, nil }
		if p.conn, err = pgx.ConnectConfig(ctx, config); err != nil {
			p.conn = nil
			return nil, err
		}
	}
	if !p.ready {
		if _, err := p.conn.Exec(ctx, "create table if not exists load_keys (k text primary key, v text)"); err != nil {
			return nil, err
		}
		p.ready = true
	}
	return p.conn, nil
}

// A query that takes longer has failed: its connection is closed, and what came of it is not known.
const postgresPatience = 5 * time.Second

func (p *postgres) put(ctx context.Context, key, value string) error {
	ctx, cancel := context.WithTimeout(ctx, postgresPatience)
	defer cancel()
	conn, err := p.open(ctx)
	if err == nil {
		_, err = conn.Exec(ctx, "insert into load_keys values ($1, $2) on conflict (k) do update set v = excluded.v", key, value)
	}
	return err
}

func (p *postgres) get(ctx context.Context, key string) (value string, err error) {
	ctx, cancel := context.WithTimeout(ctx, postgresPatience)
	defer cancel()
	conn, err := p.open(ctx)
	if err != nil {
		return "", err
	}
	var follows bool
	err = conn.QueryRow(ctx, "select pg_is_in_recovery(), coalesce((select v from load_keys where k = $1), '')", key).Scan(&follows, &value)
	if err == nil && follows {
		err = errors.New("this member leads no more")
	}
	return value, err
}
