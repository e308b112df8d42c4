package examples

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stead-project/stead/records"
)

// fakeSpark is a master or a worker, which runs until it is told to end, and spark-submit. A worker has an executor while there is a task.
const fakeSpark = `#!/bin/bash
all=$*
case $all in
*deploy.SparkSubmit*) echo "submit ${all##*SparkSubmit }" >> "$FAKE/calls" ;;
*)
  mkfifo "$FAKE/never" && exec 9<>"$FAKE/never"
  trap 'echo PWR >> "$FAKE/calls"' PWR
  trap 'echo TERM >> "$FAKE/calls"; exit 143' TERM
  if [ -e "$FAKE/task" ]; then (trap 'echo executor PWR >> "$FAKE/calls"' PWR; while [ -e "$FAKE/task" ]; do sleep 0.05; done) & fi
  echo "$SPARK_LOCAL_DIRS $all" > "$FAKE/ran.new" && mv "$FAKE/ran.new" "$FAKE/ran"
  while :; do read -rt 0.05 -u 9 || true; done ;; # sleep would be a child
esac
`

// newSpark is a member whose page says what says holds; nil: nothing answers.
func newSpark(t *testing.T, ordinal int) (h *home, facts records.Snapshot, says *atomic.Pointer[string]) {
	t.Helper()
	h = newHome(t, "spark", ordinal)
	says = &atomic.Pointer[string]{}
	var asked atomic.Int32
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text := says.Load()
		if text == nil || r.URL.Path != "/json/" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		_, _ = w.Write([]byte(*text))
		if asked.Add(1) == 2 { // one asks after the other
			h.put("asked", "")
		}
	}))
	t.Cleanup(page.Close)
	_, port, err := net.SplitHostPort(page.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	h.put("bin/java", fakeSpark)
	h.put("secret/secret", "known to few\n")
	for _, name := range []string{"spark-defaults.conf", "java17.options", "log4j2.properties"} {
		h.put("entry/"+name, script(t, "spark", name))
	}
	h.put("entry/master.options", "-Xmx1m")
	h.put("entry/worker.options", "-Xmx2m")
	h.env = append(h.env, "JAVA="+h.dir+"/bin/java", "RUN="+h.dir+"/run", "ENTRY="+h.dir+"/entry", "SECRET="+h.dir+"/secret", "STEAD_ADDRESS=127.0.0.1", "PAGE="+port)
	facts = records.Snapshot{Replicas: 3, InitialOrdinals: []int{0, 1, 2}, Peers: []records.Peer{h.peer(0), h.peer(1), h.peer(2)}}
	h.set(facts)
	return h, facts, says
}

// masterSays is a master's page, and workerSays that of a worker.
func masterSays(status string) *string {
	return new(fmt.Sprintf("{\n  \"url\" : \"spark://x:7077\",\n  \"workers\" : [ {\n    \"state\" : \"ALIVE\"\n  } ],\n  \"activeapps\" : [ {\n    \"status\" : \"ALIVE\"\n  } ],\n  \"status\" : %q\n}", status))
}

func workerSays(master string) *string {
	return new(fmt.Sprintf("{\n  \"id\" : \"worker-1\",\n  \"masterurl\" : %q,\n  \"cores\" : 1\n}", master))
}

func TestAMasterOfSparkLeadsWhileItSaysSo(t *testing.T) {
	t.Parallel()
	h, _, says := newSpark(t, 1)
	says.Store(masterSays("STANDBY"))
	h.start("master")
	until(t, "the master runs", func() bool { return h.has("ran") })
	if ran := h.read("ran"); !strings.Contains(ran, "-Xmx1m org.apache.spark.deploy.master.Master --host spark-1.spark.d --port 7077 ") {
		t.Errorf("it runs %s", ran)
	}
	until(t, "it was asked twice", func() bool { return h.has("asked") })
	if h.has("facts/self/leader") {
		t.Error("one that stands by leads")
	}
	says.Store(masterSays("ALIVE"))
	until(t, "it leads", func() bool { return h.has("facts/self/leader") })
	if term := h.read("facts/self/leader"); term != "\n" {
		t.Errorf("its term is %q", term)
	}
	says.Store(nil)
	until(t, "it leads no more when it does not answer", func() bool { return !h.has("facts/self/leader") })
}

func TestAMasterOfSparkIsReadyWhileOneIsActive(t *testing.T) {
	t.Parallel()
	for _, at := range []struct {
		name   string
		says   *string
		leader bool // another one leads
		code   int
	}{
		{"active itself", masterSays("ALIVE"), false, 0},
		{"stands by", masterSays("STANDBY"), true, 0},
		{"stands by for nobody", masterSays("STANDBY"), false, 1},
		{"takes over", masterSays("RECOVERING"), false, 1},
		{"silent", nil, true, 1},
	} {
		h, facts, says := newSpark(t, 1)
		says.Store(at.says)
		facts.Peers[0].Ready, facts.Peers[0].Leads = at.leader, at.leader
		h.set(facts)
		_, wait := h.start("ready", "master")
		wait()
		if h.code != at.code {
			t.Errorf("%s: exit %d, it says %s", at.name, h.code, h.read("log"))
		}
	}
}

func TestAWorkerOfSparkAsksAllMastersAndBeginsWithoutWhatExecutorsLeft(t *testing.T) {
	t.Parallel()
	h, _, says := newSpark(t, 2)
	h.put("disk/local/left", "of before")
	h.put("disk/work/app/stderr", "of before")
	says.Store(workerSays(""))
	h.start("worker")
	until(t, "the worker runs", func() bool { return h.has("ran") })
	if ran := h.read("ran"); !strings.HasPrefix(ran, h.dir+"/disk/local ") || !strings.Contains(ran, "-Xmx2m org.apache.spark.deploy.worker.Worker --host spark-2.spark.d ") ||
		!strings.HasSuffix(ran, " spark://spark-master-0.spark-master:7077,spark-master-1.spark-master:7077,spark-master-2.spark-master:7077\n") {
		t.Errorf("it runs %s", ran)
	}
	if h.has("disk/local/left") || !h.has("disk/work/app/stderr") {
		t.Error("results of executors that ended are there, or the logs of applications are not")
	}
	if conf := h.read("run/conf/spark-defaults.conf"); !strings.HasSuffix(conf, "\nspark.authenticate.secret known to few\n") {
		t.Errorf("the configuration is %s", conf)
	}
	if at, err := os.Stat(h.dir + "/run/conf"); err != nil || at.Mode().Perm() != 0o700 {
		t.Errorf("others read the secret: %v, %v", at.Mode(), err)
	}
	for master, code := range map[string]int{"": 1, "spark://x:7077": 0} {
		says.Store(workerSays(master))
		_, wait := h.start("ready", "worker")
		wait()
		if h.code != code {
			t.Errorf("registered with %q: exit %d, it says %s", master, h.code, h.read("log"))
		}
	}
}

func TestAWorkerOfSparkLeavesWhenItsExecutorsHaveEnded(t *testing.T) {
	t.Parallel()
	for reason, gives := range map[string]bool{"ScaleDown": true, "Update": true, "Delete": false, "ScaleToZero": false} {
		h, _, _ := newSpark(t, 2)
		h.put("task", "")
		h.put("bin/sleep", "#!/bin/bash\n[ \"$1\" != 2 ] || : > \"$FAKE/waited\"\nexec /bin/sleep \"$1\"\n")
		_, end := h.start("worker")
		until(t, "the worker runs", func() bool { return h.has("ran") && h.has("run/worker") })
		_, wait := h.start("abort") // nobody has asked it to leave
		wait()
		if calls := h.read("calls"); h.code != 0 || calls != "" {
			t.Errorf("%s: abort before: exit %d, calls %q", reason, h.code, calls)
		}

		h.put("facts/termination-reason", reason+"\n")
		ended := make(chan int, 1)
		_, wait = h.start("decommission")
		go func() { wait(); ended <- h.code }()
		if gives {
			until(t, "it is told, and waits", func() bool {
				told := "\n" + h.read("calls")
				return strings.Contains(told, "\nPWR\n") && strings.Contains(told, "\nexecutor PWR\n") && h.has("run/leaving") && h.has("waited")
			})
			if err := os.Remove(h.dir + "/task"); err != nil {
				t.Fatal(err)
			}
		}
		if code := <-ended; code != 0 || (h.read("calls") != "") != gives {
			t.Errorf("%s: exit %d, calls %q", reason, code, h.read("calls"))
		}
		if gives { // and it is wanted again: as another worker
			_, wait = h.start("abort")
			wait()
			end()
			if calls := h.read("calls"); h.code != 143 || !strings.HasSuffix(calls, "PWR\nTERM\n") {
				t.Errorf("%s: the container ends with %d, calls %q", reason, h.code, calls)
			}
		}
	}
}

func TestWhatIsSubmittedToSparkLeavesAMasterAsItIs(t *testing.T) {
	t.Parallel()
	h, _, says := newSpark(t, 0)
	for range 2 { // in a member that is an application, and again in one that runs something else
		_, wait := h.start("submit", "--class", "A", "a.jar", "two words")
		wait()
		if h.code != 0 || !strings.Contains(h.read("calls"), "submit --class A a.jar two words\n") {
			t.Fatalf("exit %d, calls %s, it says %s", h.code, h.read("calls"), h.read("log"))
		}
	}
	says.Store(masterSays("ALIVE"))
	cmd, wait := h.start("master")
	until(t, "it leads", func() bool { return h.has("facts/self/leader") })
	h.put("run/mark", "")
	_, submitted := h.start("submit", "--help")
	submitted()
	if !h.has("run/mark") || !strings.Contains(h.read("calls"), "submit --help\n") {
		t.Errorf("the master's folder is made anew, calls %s", h.read("calls"))
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	wait()
	if h.code != 143 {
		t.Errorf("a stop ends with %d", h.code)
	}
}
