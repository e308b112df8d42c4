package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
)

func object(kind, name, doc string) *proto.Object {
	return &proto.Object{Kind: kind, Name: name, Json: []byte(doc)}
}

func TestATemplatePrintsAsKubectlDoes(t *testing.T) {
	const doc = `{"n":1700000000,"f":1.5,"b":true,"list":[{"name":"a","v":1},{"name":"b","v":20}],"map":{"x":"y"},"text":"größer"}`
	for template, want := range map[string]string{
		`{.n}`:                           "1700000000", // not 1.7e+09
		`{.f} {.b} {.text}`:              "1.5 true größer",
		`{.list[*].name}`:                "a b",
		`{.list[?(@.v>5)].name}`:         "b",
		`{.list[-1].name}`:               "b",
		`{.list[0]}`:                     `{"name":"a","v":1}`,
		`{.map}`:                         `{"x":"y"}`,
		`{.nothing.below}`:               "",
		`{range .list[*]}{.name};{end}`:  "a;b;",
		`{..name}`:                       "a b",
		`name {.list[0]['name']}{"\n"}`:  "name a\n",
		`{.list[?(@.name=="b")].v} done`: "20 done",
	} {
		var out bytes.Buffer
		if err := printTemplate(&out, template, []byte(doc)); err != nil || out.String() != want {
			t.Errorf("%s: got %q, %v, want %q", template, out.String(), err, want)
		}
	}
	if err := printTemplate(&bytes.Buffer{}, `{.list[7]}`, []byte(doc)); err == nil {
		t.Error("an index beyond the list is no error")
	}
}

func TestPathsMayBeWrittenWithoutBraces(t *testing.T) {
	for _, path := range []string{"metadata.name", ".metadata.name", "{metadata.name}", "{.metadata.name}"} {
		if got, err := onePath(path); got != "{.metadata.name}" || err != nil {
			t.Errorf("%s: %q, %v", path, got, err)
		}
	}
	for _, path := range []string{"", "{.a}{.b}", "{.a", "{.a[}"} {
		if got, err := onePath(path); err == nil {
			t.Errorf("%s is taken as %s", path, got)
		}
	}
}

func TestObjectsAreSortedByValue(t *testing.T) {
	sets := func(values ...string) (out []*proto.Object) {
		for i, v := range values {
			out = append(out, object("set", string(rune('a'+i)), `{"metadata":{"name":"x"},"status":{`+v+`}}`))
		}
		return out
	}
	for path, c := range map[string]struct {
		objects []*proto.Object
		want    string
	}{
		".status.n":    {sets(`"n":10`, `"n":9`, `"m":1`, `"n":9.5`), "cbda"},
		".status.name": {sets(`"name":"db-10"`, `"name":"db-9"`, `"name":"db"`, `"name":"db-09"`), "cbda"},
		"{.status.at}": {sets(`"at":"2026-11-02T00:00:00Z"`, `"at":"2026-10-30T00:00:00Z"`), "ba"},
		"status.ready": {sets(`"ready":true`, `"ready":false`), "ba"},
	} {
		p := &printer{kind: "set"}
		if err := p.sortBy(path, c.objects); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		got := ""
		for _, o := range c.objects {
			got += o.GetName()
		}
		if got != c.want {
			t.Errorf("%s: got %s, want %s", path, got, c.want)
		}
	}
}

// TestAMemberIsShownWithThePhaseOfItsPod: as the kubelet computes it for containers that are
// always restarted.
func TestAMemberIsShownWithThePhaseOfItsPod(t *testing.T) {
	zero, one := 0, 1
	waiting, running := records.ContainerReport{State: "Waiting"}, records.ContainerReport{State: "Running"}
	again, done, failed := records.ContainerReport{State: "Waiting", Restarts: 2, ExitCode: &one}, records.ContainerReport{State: "Exited", ExitCode: &zero},
		records.ContainerReport{State: "Exited", ExitCode: &one}
	for name, c := range map[string]struct {
		life       records.Phase
		containers []records.ContainerReport
		want       string
	}{
		"no life":                     {"", nil, "Pending"},
		"nothing reported":            {records.PhaseAssigned, nil, "Pending"},
		"one was never started":       {records.PhaseStarting, []records.ContainerReport{running, waiting}, "Pending"},
		"all run":                     {records.PhaseRunning, []records.ContainerReport{running, running}, "Running"},
		"one waits for its restart":   {records.PhaseRunning, []records.ContainerReport{running, again}, "Running"},
		"all ended, to be restarted":  {records.PhaseRunning, []records.ContainerReport{failed}, "Running"},
		"it is stopping":              {records.PhaseStopping, []records.ContainerReport{running}, "Running"},
		"over, all with 0":            {records.PhaseStopped, []records.ContainerReport{done, done}, "Succeeded"},
		"over, one failed":            {records.PhaseStopped, []records.ContainerReport{done, failed}, "Failed"},
		"over before anything ran":    {records.PhaseStopped, nil, "Failed"},
		"refused":                     {records.PhaseFailed, nil, "Failed"},
		"over, an exit is not known":  {records.PhaseStopped, []records.ContainerReport{done, running}, "Failed"},
		"stopping, nothing was begun": {records.PhaseStopping, nil, "Pending"},
	} {
		st := &records.ShownMember{MemberStatus: records.MemberStatus{Phase: c.life}}
		if c.containers != nil {
			st.Report = &records.Report{Containers: c.containers}
		}
		if got := podPhase(st); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}

// TestScriptsFindTheFieldsOfAPod: beside all that a member has.
func TestScriptsFindTheFieldsOfAPod(t *testing.T) {
	member := object("member", "db-1", `{"kind":"Member","metadata":{"name":"db-1","namespace":"default","labels":{"app":"db"}},
		"spec":{"node":"host-a","future":7},"status":{"name":"db-1","ordinal":1,"node":"host-a","address":"10.88.0.2","phase":"Running",
		"blocked":"waits for db-0","beganAt":"2026-11-23T10:00:00Z","future":8,"report":{"phase":"Running","containers":[
		{"name":"main","state":"Running","ready":true,"image":"db:1","started":"2026-11-23T10:00:01Z"},
		{"name":"side","state":"Exited","restarts":3,"exitCode":2,"cause":"CrashLoop","image":"side:1"},
		{"name":"last","state":"Exited","exitCode":0},{"name":"next","state":"Waiting"}]}}}`)
	doc, err := asPod(member, map[string]string{"host-a": "192.0.2.1"})
	if err != nil {
		t.Fatal(err)
	}
	for template, want := range map[string]string{
		"{.kind} {.metadata.name} {.metadata.namespace} {.metadata.labels.app}":         "Member db-1 default db",
		"{.spec.node} {.spec.nodeName} {.spec.future}":                                  "host-a host-a 7",
		"{.status.phase} {.status.lifePhase} {.status.address} {.status.future}":        "Pending Running 10.88.0.2 8",
		"{.status.podIP} {.status.podIPs[0].ip} {.status.hostIP} {.status.startTime}":   "10.88.0.2 10.88.0.2 192.0.2.1 2026-11-23T10:00:00Z",
		"{.status.containerStatuses[*].name} {.status.containerStatuses[*].ready}":      "main side last next true false false false",
		"{.status.containerStatuses[1].restartCount}":                                   "3",
		"{.status.containerStatuses[0].state.running.startedAt}":                        "2026-11-23T10:00:01Z",
		"{.status.containerStatuses[1].state.terminated.exitCode}":                      "2",
		"{.status.containerStatuses[1].state.terminated.reason}":                        "CrashLoop",
		"{.status.containerStatuses[2].state.terminated.reason}":                        "Completed",
		"{.status.containerStatuses[3].state.waiting.reason}":                           "ContainerCreating",
		`{.status.conditions[?(@.type=="Ready")].status}`:                               "False",
		`{.status.conditions[?(@.type=="Ready")].message}`:                              "waits for db-0",
		`{.status.conditions[?(@.type=="PodScheduled")].status}`:                        "True",
		`{.status.conditions[*].type}`:                                                  "PodScheduled ContainersReady Ready",
		"{.status.report.containers[0].name} {.status.report.phase} {.status.beganAt}x": "main Running 2026-11-23T10:00:00Zx",
	} {
		var out bytes.Buffer
		if err := printTemplate(&out, template, doc); err != nil || out.String() != want {
			t.Errorf("%s: got %q, %v, want %q", template, out.String(), err, want)
		}
	}
	waits, err := asPod(object("member", "db-2", `{"metadata":{"name":"db-2"},"spec":null,"status":{"name":"db-2"}}`), nil)
	if err != nil || !json.Valid(waits) || !strings.Contains(string(waits), `"phase":"Pending"`) || strings.Contains(string(waits), time.Time{}.Format("2006")) {
		t.Errorf("%v\n%s", err, waits)
	}
}
