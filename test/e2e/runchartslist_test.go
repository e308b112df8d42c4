package e2e

// chartsThatRun are ten popular charts with software of Debian 12, and NATS of our own. Their questions go to the Services and to
// the names of the members, from inside.
var chartsThatRun = []runChart{
	{
		name: "redis",
		images: map[string]string{
			"docker.io/bitnami/redis:7.0.15-debian-12-r0": "redis", "docker.io/bitnami/redis-sentinel:7.0.15-debian-12-r0": "redis",
			"docker.io/bitnami/redis-exporter:1.45.0-debian-12-r0": "redis-exporter",
		},
		members: []string{"redis-node-0", "redis-node-1", "redis-node-2"}, inside: "redis", killed: "redis-node-1",
		formed: `export REDISCLI_AUTH=stooped; redis-cli -h redis -p 26379 info sentinel
exec 3<>/dev/tcp/redis-metrics/9121; printf 'GET /metrics HTTP/1.0\r\n\r\n' >&3; timeout 10 grep '^redis_up ' <&3`,
		is: `(?s)status=ok,address=\S+:6379,slaves=2,sentinels=3.*redis_up 1`,
		write: `export REDISCLI_AUTH=stooped; master=$(redis-cli -h redis -p 26379 sentinel get-master-addr-by-name mymaster | head -1)
printf 'set kept yes\nwait 2 10000\n' | redis-cli -h "$master"`,
		written: `^OK\n2\n$`,
		read:    `export REDISCLI_AUTH=stooped; for i in 0 1 2; do redis-cli -h redis-node-$i.redis-headless get kept; done`,
		kept:    `^yes\nyes\nyes\n$`,
	},
	{
		name:    "etcd",
		images:  map[string]string{"docker.io/bitnami/etcd:3.4.23-debian-12-r0": "etcd"},
		members: []string{"etcd-0", "etcd-1", "etcd-2"}, inside: "etcd", killed: "etcd-1",
		formed: `etcdctl --endpoints http://etcd:2379 member list | grep -c started
for i in 0 1 2; do etcdctl --endpoints http://etcd-$i.etcd-headless:2379 endpoint health 2>&1; done | grep -c 'is healthy'`,
		is:    `^3\n3\n$`,
		write: `etcdctl --endpoints http://etcd:2379 put kept yes`, written: `^OK\n$`,
		read: `etcdctl --endpoints http://etcd:2379 get kept --print-value-only`, kept: `^yes\n$`,
	},
	{
		name: "zookeeper",
		images: map[string]string{
			"docker.io/bitnami/zookeeper:3.8.0-debian-12-r0": "zookeeper", "docker.io/bitnami/os-shell:12-debian-12-r0": "base",
		},
		members: []string{"zookeeper-0", "zookeeper-1", "zookeeper-2"}, inside: "zookeeper", killed: "zookeeper-1",
		formed: `for i in 0 1 2; do exec 3<>/dev/tcp/zookeeper-$i.zookeeper-headless/2181; printf srvr >&3; grep ^Mode <&3; done | sort`,
		is:     `^Mode: follower\nMode: follower\nMode: leader\n$`,
		write:  zookeeperTool + `create /kept yes 2>&1`, written: `Created /kept|Node already exists`,
		read: zookeeperTool + `get /kept 2>/dev/null`, kept: `(?m)^yes$`,
	},
	{
		name:    "postgresql",
		images:  map[string]string{"docker.io/bitnami/postgresql:15.20.0-debian-12-r0": "postgresql"},
		members: []string{"pg-postgresql-primary-0", "pg-postgresql-read-0", "pg-postgresql-read-1"}, inside: "postgresql", killed: "pg-postgresql-primary-0",
		formed: psql + `-h pg-postgresql-primary -Atc "select count(*) from pg_stat_replication where state = 'streaming'"
psql -U postgres -h pg-postgresql-read -Atc 'select pg_is_in_recovery()'`,
		is:    `^2\nt\n$`,
		write: psql + `-h pg-postgresql-primary -c 'create table kept as select 1 as yes' shop 2>&1`, written: `^SELECT 1|already exists`,
		read: psql + `-h pg-postgresql-primary -Atc 'select yes from kept' shop
for i in 0 1; do psql -U postgres -h pg-postgresql-read-$i.pg-postgresql-read-hl -Atc 'select yes from kept' shop; done`,
		kept: `^1\n1\n1\n$`,
	},
	{
		name:    "mariadb-galera",
		images:  map[string]string{"docker.io/bitnami/mariadb-galera:10.11.19-debian-12-r0": "galera"},
		members: []string{"mariadb-galera-0", "mariadb-galera-1", "mariadb-galera-2"}, inside: "mariadb-galera", killed: "mariadb-galera-1",
		formed: mariadb + `sql mariadb-galera "show status like 'wsrep_cluster_size'"
for i in 0 1 2; do sql mariadb-galera-$i.mariadb-galera-headless "show status like 'wsrep_local_state_comment'"; done`,
		is: `^wsrep_cluster_size\s3\n(wsrep_local_state_comment\sSynced\n){3}$`,
		write: mariadb + `sql mariadb-galera "create table if not exists shop.kept (id int primary key); replace into shop.kept values (7)"
echo done`, written: `^done\n$`,
		read: mariadb + `for i in 0 1 2; do sql mariadb-galera-$i.mariadb-galera-headless "select id from shop.kept"; done`, kept: `^7\n7\n7\n$`,
	},
	{
		name:    "rabbitmq",
		images:  map[string]string{"docker.io/bitnami/rabbitmq:3.10.8-debian-12-r0": "rabbitmq"},
		members: []string{"rabbitmq-0", "rabbitmq-1", "rabbitmq-2"}, inside: "rabbitmq", killed: "rabbitmq-1",
		formed: rabbit + `api nodes | grep -o '"running":true' | wc -l`, is: `^3\n$`,
		write: rabbit + `api queues/%2f/kept -X PUT -d '{"durable":true,"arguments":{"x-queue-type":"quorum"}}' &&
api exchanges/%2f/amq.default/publish -d '{"properties":{"delivery_mode":2},"routing_key":"kept","payload":"yes","payload_encoding":"string"}'`,
		written: `"routed":true`,
		read:    rabbit + `api queues/%2f/kept/get -d '{"count":1,"ackmode":"ack_requeue_true","encoding":"auto"}'`, kept: `"payload":"yes"`,
	},
	{
		name:    "nats",
		images:  map[string]string{"nats:2.14.10": "nats"},
		members: []string{"nats-0", "nats-1", "nats-2"}, inside: "nats", killed: "nats-1",
		formed: `for i in 0 1 2; do busybox wget -qO- http://nats-$i.nats-headless:8222/routez | grep -o '"remote_name": "[^"]*"' | sort -u | wc -l; done
busybox wget -qO- http://nats-0.nats-headless:8222/jsz | grep cluster_size`,
		is: `^(2\n){3}\s*"cluster_size": 3,?\n$`,
		write: natsAsk + `ask '$JS.API.STREAM.CREATE.KEPT' '{"name":"KEPT","subjects":["kept.>"],"storage":"file","num_replicas":3}'
ask kept.a yes`,
		written: `"stream":"KEPT", *"seq"`,
		read:    natsAsk + `ask '$JS.API.STREAM.MSG.GET.KEPT' '{"last_by_subj":"kept.a"}'`, kept: `"data":"eWVz"`, // yes
	},
	{
		name:    "openldap",
		images:  map[string]string{"jpgouin/openldap:2.5.13-fix": "openldap"},
		members: []string{"openldap-0", "openldap-1", "openldap-2"}, inside: "openldap", killed: "openldap-1",
		formed: ldap + `everywhere ou=users`, is: `^(dn: ou=users,dc=example,dc=org\n){3}$`,
		write:   ldap + `printf 'dn: uid=kept,ou=users,dc=example,dc=org\nobjectClass: account\nuid: kept\n' | ldapadd -H ldap://openldap $who 2>&1`,
		written: `adding new entry|Already exists`,
		read:    ldap + `everywhere uid=kept`, kept: `^(dn: uid=kept,ou=users,dc=example,dc=org\n){3}$`,
	},
	{
		name: "monitoring",
		images: map[string]string{
			"quay.io/prometheus/alertmanager:v0.25.0": "alertmanager", "quay.io/prometheus/prometheus:v2.42.0": "prometheus",
			"quay.io/prometheus/busybox:latest": "box",
		},
		members: []string{"alertmanager-0", "alertmanager-1", "alertmanager-2", "prometheus-server-0"}, inside: "alertmanager", killed: "alertmanager-1",
		formed: `get() { busybox wget -qO- "$@"; }
get http://alertmanager:9093/api/v2/status | grep -o '"address":' | wc -l
get 'http://prometheus-server/api/v1/query?query=sum(up%7Bjob%3D%22alertmanager%22%7D)' | grep -o '"3"'
get http://alertmanager:9093/api/v2/alerts | grep -o '"alertname":"Watchdog"'`,
		is:    `^3\n"3"\n"alertname":"Watchdog"\n$`,
		write: `HOME=/tmp amtool --alertmanager.url=http://alertmanager:9093 silence add alertname=kept -d 2h -c kept -a me`, written: `^[0-9a-f-]{36}\n$`,
		read: `for i in 0 1 2; do busybox wget -qO- http://alertmanager-$i.alertmanager-headless:9093/api/v2/silences | grep -o '"value":"kept"'; done`,
		kept: `^("value":"kept"\n){3}$`,
	},
	{
		name:    "memcached",
		images:  map[string]string{"docker.io/bitnami/memcached:1.6.18-debian-12-r0": "memcached"},
		members: []string{"memcached-0", "memcached-1", "memcached-2"}, inside: "memcached", killed: "memcached-1", volatile: true,
		formed: memcached + `for to in memcached memcached-{0,1,2}.memcached-hl; do ask $to 'version\r\nquit\r\n'; done`, is: `^(VERSION 1\.6\.18\s*\n){4}$`,
		write: memcached + `ask memcached-0.memcached-hl 'set kept 0 0 3\r\nyes\r\nquit\r\n'`, written: `^STORED`,
		read: memcached + `ask memcached-0.memcached-hl 'get kept\r\nquit\r\n'`, kept: `(?m)^yes\s*$`,
	},
}

// The beginnings of scripts: what a client of the software needs.
const (
	zookeeperTool = `jars=$(printf '%s:' /usr/share/java/{zookeeper,zookeeper-jute,slf4j-api,slf4j-simple,netty-all,metrics-core,snappy-java,commons-cli,commons-io}.jar)
/usr/lib/jvm/java-17-openjdk-amd64/bin/java -Xmx32m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -cp "$jars" org.apache.zookeeper.ZooKeeperMain -server zookeeper:2181 `
	psql = `export PGPASSWORD=stooped
psql -U postgres `
	mariadb = `set -e
sql() { mariadb --no-defaults --connect-timeout=5 -h "$1" -u root -pstooped -N -e "$2"; }
`
	rabbit = `api() { curl -sS -u user:stooped -H 'content-type: application/json' "http://rabbitmq:15672/api/$1" "${@:2}"; }
`
	natsAsk = `ask() {
  exec 3<>/dev/tcp/nats/4222
  printf 'CONNECT {"verbose":false,"pedantic":false}\r\nSUB in 1\r\nPUB %s in %d\r\n%s\r\nPING\r\n' "$1" ${#2} "$2" >&3
  timeout 10 sed -un '/^MSG/{n;p;q}' <&3
}
`
	ldap = `who="-x -D cn=admin,dc=example,dc=org -w stooped"
everywhere() { for i in 0 1 2; do ldapsearch -LLL -H ldap://openldap-$i.openldap-headless:1389 $who -b dc=example,dc=org "$1" dn | grep ^dn; done; }
`
	memcached = `ask() { exec 3<>/dev/tcp/$1/11211; printf "$2" >&3; timeout 10 cat <&3; }
`
)
