package main

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"log"
	"net"
	"time"

	"github.com/go-sql-driver/mysql"
)

// galera writes rows to MariaDB, and reads what was acknowledged by any member (wsrep_sync_wait).
type galera struct {
	names  []string
	at     int
	dialer *net.Dialer
	db     *sql.DB
	ready  bool // the table is there
}

func newGalera(names []string, dns string, first int) *galera {
	_ = mysql.SetLogger(log.New(io.Discard, "", 0)) // the last lines are the result
	return &galera{names: names, at: first % len(names), dialer: dialerBy(dns)}
}

func (g *galera) next() {
	g.at = (g.at + 1) % len(g.names)
	if g.db != nil {
		_ = g.db.Close() // another member is asked from now on
		g.db = nil
	}
}

// open connects to the present member, with a table to write to.
func (g *galera) open(ctx context.Context) (*sql.DB, error) {
	if g.db == nil {
		config := mysql.NewConfig()
		config.User, config.Passwd, config.DBName = "app", "change-me", "app"
		config.Net, config.Addr = "tcp", g.names[g.at]
		config.DialFunc = g.dialer.DialContext
		config.Timeout, config.ReadTimeout, config.WriteTimeout = time.Second, 5*time.Second, 5*time.Second
		config.Params = map[string]string{"wsrep_sync_wait": "1"}
		connector, err := mysql.NewConnector(config)
		if err != nil {
			return nil, err
		}
		g.db = sql.OpenDB(connector)
		g.db.SetMaxOpenConns(1)
	}
	if !g.ready {
		if _, err := g.db.ExecContext(ctx, "create table if not exists load_keys (k varchar(200) primary key, v text) engine=InnoDB"); err != nil {
			return nil, err
		}
		g.ready = true
	}
	return g.db, nil
}

func (g *galera) put(ctx context.Context, key, value string) error {
	db, err := g.open(ctx)
	if err == nil {
		_, err = db.ExecContext(ctx, "replace into load_keys values (?, ?)", key, value)
	}
	return err
}

func (g *galera) get(ctx context.Context, key string) (value string, err error) {
	db, err := g.open(ctx)
	if err != nil {
		return "", err
	}
	err = db.QueryRowContext(ctx, "select v from load_keys where k = ?", key).Scan(&value)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return value, err
}
