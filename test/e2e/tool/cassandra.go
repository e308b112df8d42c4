package main

import (
	"context"
	"errors"
	"net"
	"strconv"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
)

// cassandra writes rows with QUORUM through one member of Cassandra at a time, and reads them with QUORUM.
type cassandra struct {
	names   []string
	at      int
	dialer  *net.Dialer
	session *gocql.Session
	ready   bool // the table is there
}

func newCassandra(names []string, dns string, first int) *cassandra {
	return &cassandra{names: names, at: first % len(names), dialer: dialerBy(dns)}
}

func (c *cassandra) next() {
	c.at = (c.at + 1) % len(c.names)
	if c.session != nil {
		c.session.Close() // another member is asked from now on
		c.session = nil
	}
}

// cassandraPatience is longer than Cassandra's own time for a write (2 s) or a read (5 s).
const cassandraPatience = 8 * time.Second

// open connects to the present member, with a table to write to.
func (c *cassandra) open(ctx context.Context) (*gocql.Session, error) {
	if c.session != nil {
		return c.session, nil
	}
	host, port, err := net.SplitHostPort(c.names[c.at])
	if err != nil {
		return nil, err
	}
	addresses, err := c.dialer.Resolver.LookupHost(ctx, host)
	if err != nil {
		return nil, err
	}
	config := gocql.NewCluster(addresses[0])
	if config.Port, err = strconv.Atoi(port); err != nil {
		return nil, err
	}
	config.DisableInitialHostLookup = true // this member alone
	config.ProtoVersion, config.Consistency = 5, gocql.Quorum
	config.Timeout, config.ConnectTimeout, config.NumConns = cassandraPatience, 5*time.Second, 1
	config.ReconnectInterval = 0
	config.Events.DisableNodeStatusEvents, config.Events.DisableTopologyEvents, config.Events.DisableSchemaEvents = true, true, true
	session, err := gocql.NewSession(*config)
	if err != nil {
		return nil, err
	}
	var statements []string
	if !c.ready {
		statements = []string{
			`create keyspace if not exists load with replication = {'class': 'NetworkTopologyStrategy', 'dc1': 3}`,
			`create table if not exists load.keys (k text primary key, v text)`,
		}
	}
	for _, statement := range statements {
		if err := session.Query(statement).ExecContext(ctx); err != nil {
			session.Close()
			return nil, err
		}
	}
	c.session, c.ready = session, true
	return session, nil
}

func (c *cassandra) put(ctx context.Context, key, value string) error {
	ctx, cancel := context.WithTimeout(ctx, cassandraPatience)
	defer cancel()
	session, err := c.open(ctx)
	if err == nil {
		err = session.Query("insert into load.keys (k, v) values (?, ?)", key, value).ExecContext(ctx)
	}
	return err
}

func (c *cassandra) get(ctx context.Context, key string) (value string, err error) {
	ctx, cancel := context.WithTimeout(ctx, cassandraPatience)
	defer cancel()
	session, err := c.open(ctx)
	if err != nil {
		return "", err
	}
	err = session.Query("select v from load.keys where k = ?", key).ScanContext(ctx, &value)
	if errors.Is(err, gocql.ErrNotFound) {
		return "", nil
	}
	return value, err
}
