package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// piece is one test of the tree with a long form, or another program of ours.
type piece struct {
	name, what string
	pkg, test  string
	// program is what `go run` runs instead of a test, with these arguments.
	program func(seed uint64) []string
	// passed are words of a line that each good run prints; "": those of a test.
	passed string
	// env makes the test's long form of a seed and the time that is left.
	env func(seed uint64, left time.Duration) []string
	// repeats: a run has an end of its own, and another one follows with the next
	// seed until the time is over.
	repeats bool
	// tells are the words by which lines of the output are found that tell what
	// was done.
	tells []string
}

// byChance is the long form of tests that use soakFor (test/e2e).
func byChance(seed uint64, left time.Duration) []string {
	return []string{"STEAD_ROOT_TESTS=1", "STEAD_SOAK=" + left.String(), fmt.Sprint("STEAD_SOAK_SEED=", seed)}
}

// inLab is the long form of tests on hosts with kernels of their own (test/lab). They are skipped, and the piece
// fails, where scripts/setup --lab has not installed what they need.
func inLab(seed uint64, left time.Duration) []string {
	return []string{"STEAD_LAB=1", "STEAD_SOAK=" + left.String(), fmt.Sprint("STEAD_SOAK_SEED=", seed)}
}

// ofCatalogue is a database of examples/ under faults.
func ofCatalogue(set, what string) piece {
	return piece{
		name: set, what: what + " under load: each fault, then by chance",
		pkg: "./test/e2e", test: "^TestADatabaseLosesNothingUnderFaults$/^" + set + "$", env: byChance,
		tells: []string{"soak for", "acts:", "load:"},
	}
}

// onHosts is a database of examples/ with a host for each member and one to spare.
func onHosts(set, what string) piece {
	return piece{
		name: "hosts-" + set, what: what + " under load: its hosts are drained, moved from, cut off and powered off, each once, then by chance",
		pkg: "./test/e2e", test: "^TestADatabaseLosesNothingWhenItsHostsAreDrainedMovedFromCutOffAndPoweredOff$/^" + set + "$", env: byChance,
		tells: []string{"soak for", "acts:", "load:"},
	}
}

// databasesInLab are databases of examples/ on hosts with kernels of their own, each with a server.
func databasesInLab(name, test, what string) piece {
	return piece{
		name: name, what: "the same with a server on each host, and " + what + ": the leader's host loses its power, is moved from, is cut off",
		pkg: "./test/lab", test: "^TestDatabasesLoseNothingWhenTheirHostsAreLostMovedFromAndCutOff$/^" + test + "$", env: inLab, tells: []string{"acts:", "load:"},
	}
}

// boxSeeds is how many scripts of test/box make one run.
const boxSeeds = 48

var pieces = []piece{
	{
		name: "etcd", what: "etcd under load: updates good and bad, lost disks, kills, scaling, by chance",
		pkg: "./test/e2e", test: "^TestEtcdLosesNothingThroughUpdatesAndLostDisks$", env: byChance,
		tells: []string{"soak for", "acts:", "load:"},
	},
	{
		name: "zookeeper", what: "the same with ZooKeeper",
		pkg: "./test/e2e", test: "^TestZooKeeperLosesNothingThroughUpdatesAndLostDisks$", env: byChance,
		tells: []string{"soak for", "acts:", "load:"},
	},
	ofCatalogue("galera", "MariaDB with Galera"),
	{
		name: "galera-again", what: "MariaDB with Galera: its set deleted, the disk of member 0 given up, and applied again",
		pkg: "./test/e2e", test: "^TestGaleraLosesNothingWhenItsSetIsMadeAgain$", env: byChance,
		tells: []string{"load:"},
	},
	ofCatalogue("cassandra", "Cassandra; its image needs Maven Central"),
	ofCatalogue("kafka", "Kafka; its image needs Maven Central"),
	ofCatalogue("nats", "NATS JetStream"),
	ofCatalogue("postgresql", "PostgreSQL with failover by Patroni"),
	ofCatalogue("rabbitmq", "RabbitMQ with quorum queues"),
	ofCatalogue("redis", "Redis with Sentinel"),
	ofCatalogue("redis-cluster", "Redis Cluster, six members"),
	onHosts("etcd", "etcd"),
	onHosts("zookeeper", "ZooKeeper"),
	onHosts("galera", "MariaDB with Galera"),
	onHosts("nats", "NATS JetStream"),
	onHosts("redis", "Redis with Sentinel"),
	onHosts("redis-cluster", "Redis Cluster, six members on four hosts"),
	onHosts("rabbitmq", "RabbitMQ with quorum queues"),
	onHosts("postgresql", "PostgreSQL with failover by Patroni, and its etcd"),
	onHosts("cassandra", "Cassandra; its image needs Maven Central"),
	onHosts("kafka", "Kafka; its image needs Maven Central"),
	{
		name: "spark", what: "Spark's masters and workers while an application computes: each fault, then by chance; its image needs Maven Central",
		pkg: "./test/e2e", test: "^TestAnApplicationOfSparkComputesRightUnderFaults$", env: byChance,
		tells: []string{"soak for", "acts:", "load:"},
	},
	{
		name: "charts", what: "ten popular charts as they are, with software of Debian: formed, updated, a member killed",
		pkg: "./test/e2e", test: "^TestTenChartsRun$", env: byChance,
		tells: []string{"chart:"},
	},
	{
		name: "matrix", what: "three servers, four hosts, etcd, ZooKeeper and guarded lives: every fault in turn, by chance",
		pkg: "./test/e2e", test: "^TestNothingIsLostThroughTheMatrixOfFaults$", env: byChance,
		tells: []string{"soak for", "acts:", "load:"},
	},
	{
		name: "servers", what: "servers with their own etcd, four hosts, etcd under load: one becomes three, each is killed, disks and quorum are lost, by chance",
		pkg: "./test/e2e", test: "^TestServersWithTheirOwnStore$", env: byChance,
		tells: []string{"soak for", "acts:", "load:"},
	},
	{
		name: "upgrade", what: "the same servers and hosts, from an earlier commit: upgraded, back, and servers and agents that change their program by chance",
		pkg: "./test/e2e", test: "^TestServersAreKilledReplacedUpgradedAndRestoredUnderWrites$", env: byChance,
		tells: []string{"soak for", "load:"},
	},
	{
		name: "lab-reboot", what: "hosts with kernels of their own, etcd and ZooKeeper: orderly reboots in turn",
		pkg: "./test/lab", test: "^TestHostsRebootInTurn$", env: inLab, tells: []string{"acts:", "load:"},
	},
	{
		name: "lab-power", what: "the same with etcd: power losses by chance, also during recovery",
		pkg: "./test/lab", test: "^TestHostsLosePower$", env: inLab, tells: []string{"acts:", "load:"},
	},
	{
		name: "lab-clock", what: "the same: hosts freeze, are cut off, have their clocks set",
		pkg: "./test/lab", test: "^TestHostsFreezeAndClocksAreSet$", env: inLab, tells: []string{"acts:", "load:"},
	},
	{
		name: "lab-gone", what: "the same: a host is lost for good, and replaced by a new one",
		pkg: "./test/lab", test: "^TestAHostLostForGoodIsReplaced$", env: inLab, tells: []string{"members of the host are back", "load:"},
	},
	databasesInLab("lab-databases", "etcd-postgresql", "etcd and PostgreSQL"),
	databasesInLab("lab-galera", "galera", "Galera"),
	databasesInLab("lab-cassandra", "cassandra", "Cassandra, whose image needs Maven Central"),
	databasesInLab("lab-nats", "nats", "NATS; all hosts lose their power at once, too"),
	{
		name: "lab-runtime", what: "a host with cgroup v2: the runtime's promises with runc and with crun, and how long a start takes",
		pkg: "./test/lab", test: "^TestTheRuntimeKeepsItsPromisesOnCGroup2$", env: inLab, tells: []string{"tests passed", "-ms", "load:"},
	},
	{
		name: "many", what: "200 members on one node: created, updated and deleted, with nothing left behind",
		pkg: "./test/e2e", test: "^TestManyMembersLeaveNothingBehind$",
		env: func(uint64, time.Duration) []string {
			return []string{"STEAD_ROOT_TESTS=1", "STEAD_MANY=200"}
		},
		tells: []string{" members "},
	},
	{
		name: "sim", what: "simulated clusters under faults, a million steps a run",
		passed: " steps in ", repeats: true, tells: []string{"seeds from"},
		program: func(seed uint64) []string {
			// A run takes the seeds that follow: the next run begins far behind them.
			return []string{"./test/sim/run", "-seed", fmt.Sprint(seed * 1_000_000), "-steps", "1000000"}
		},
	},
	{
		name: "box", what: "a cluster in one process: agents and servers crash at any call",
		pkg: "./test/box", test: "^TestAnyPartMayCrashAtAnyMoment$", repeats: true,
		env: func(seed uint64, _ time.Duration) []string {
			return []string{fmt.Sprintf("STEAD_BOX_SEEDS=%d-%d", seed*boxSeeds, seed*boxSeeds+boxSeeds-1)}
		},
	},
}

// once runs the test or program, all its output into log.
func (p piece) once(ctx context.Context, log *os.File, seed uint64, left time.Duration) error {
	args := []string{"test", "-count=1", "-v", "-timeout", (left + grace).Round(time.Second).String(), "-run", p.test, p.pkg}
	if p.program != nil {
		args = append([]string{"run"}, p.program(seed)...)
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Env = os.Environ()
	if p.env != nil {
		cmd.Env = append(cmd.Env, p.env(seed, left)...)
	}
	cmd.Stdout, cmd.Stderr = log, log
	// All of it, not go alone. What a lab leaves behind the next one takes away.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = time.Minute
	return cmd.Run()
}

// told finds what the runs told, and fails when a test did not run.
func (p piece) told(path string) (found []string, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	passed, sign := 0, p.passed
	if sign == "" {
		sign = "--- PASS"
	}
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, " ") && strings.Contains(line, sign) {
			passed++
		}
		for _, word := range p.tells {
			if at := strings.Index(line, word); at >= 0 {
				found = append(found, strings.TrimSpace(line[at:]))
			}
		}
	}
	if passed == 0 {
		err = fmt.Errorf("nothing passed; see %s", path)
	}
	if p.repeats {
		found = append(found, fmt.Sprintf("%d runs passed", passed))
	}
	return found, err
}
