package main

import (
	"cmp"
	"encoding/json"
	"maps"
	"time"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// podStatus are the fields of a Pod's status that scripts read, as Kubernetes means them. The
// phase replaces that of the life, which is in LifePhase.
type podStatus struct {
	Phase             string            `json:"phase"`
	LifePhase         records.Phase     `json:"lifePhase,omitempty"`
	PodIP             string            `json:"podIP,omitempty"`
	PodIPs            []podAddress      `json:"podIPs,omitempty"`
	HostIP            string            `json:"hostIP,omitempty"`
	HostIPs           []podAddress      `json:"hostIPs,omitempty"`
	StartTime         time.Time         `json:"startTime,omitzero"`
	Conditions        []podCondition    `json:"conditions"`
	ContainerStatuses []containerStatus `json:"containerStatuses,omitempty"`
	// InitContainerStatuses are those of init containers and sidecars.
	InitContainerStatuses []containerStatus `json:"initContainerStatuses,omitempty"`
}

type podAddress struct {
	IP string `json:"ip"`
}

type podCondition struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

// containerStatus is one of status.containerStatuses.
type containerStatus struct {
	Name         string                    `json:"name"`
	Image        string                    `json:"image"`
	Ready        bool                      `json:"ready"`
	Started      bool                      `json:"started"`
	RestartCount int                       `json:"restartCount"`
	State        map[string]containerState `json:"state"` // by waiting, running or terminated
}

type containerState struct {
	Reason    string    `json:"reason,omitempty"`
	ExitCode  *int      `json:"exitCode,omitempty"`
	StartedAt time.Time `json:"startedAt,omitzero"`
}

// asPod is the document of a member with the fields of a Pod beside its own. hosts are the
// addresses of nodes by name.
func asPod(o *proto.Object, hosts map[string]string) ([]byte, error) {
	m, err := decode[any, records.ShownMember](o)
	if err != nil {
		return nil, err
	}
	doc := map[string]json.RawMessage{}
	if err := json.Unmarshal(o.GetJson(), &doc); err != nil {
		return nil, err
	}
	st := &m.Status
	doc["spec"], err = merged(doc["spec"], map[string]any{"nodeName": st.Node})
	if err != nil {
		return nil, err
	}
	doc["status"], err = merged(doc["status"], podStatusOf(st, hosts[string(st.Node)]))
	if err != nil {
		return nil, err
	}
	return json.Marshal(doc)
}

// merged is a JSON object with the fields of another, which win.
func merged(object json.RawMessage, with any) (json.RawMessage, error) {
	more, err := json.Marshal(with)
	if err != nil {
		return nil, err
	}
	base, fields := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	if len(object) > 0 {
		if err := json.Unmarshal(object, &base); err != nil {
			return nil, err
		}
	}
	if err := json.Unmarshal(more, &fields); err != nil {
		return nil, err
	}
	if base == nil { // of a member without a life: null
		base = map[string]json.RawMessage{}
	}
	maps.Copy(base, fields)
	return json.Marshal(base)
}

func podStatusOf(st *records.ShownMember, host string) podStatus {
	out := podStatus{Phase: podPhase(st), LifePhase: st.Phase, StartTime: st.BeganAt, HostIP: host}
	if st.Address.IsValid() {
		out.PodIP = st.Address.String()
		out.PodIPs = []podAddress{{out.PodIP}}
	}
	if host != "" {
		out.HostIPs = []podAddress{{host}}
	}
	ready, why := podCondition{Type: "Ready", Status: "True"}, blockedText(st.MemberStatus)
	if !st.Ready {
		ready.Status, ready.Message = "False", why
	}
	placed := podCondition{Type: "PodScheduled", Status: "True"}
	if st.Node == "" {
		placed.Status, placed.Message = "False", why
	}
	contained := ready
	contained.Type = "ContainersReady"
	out.Conditions = []podCondition{placed, contained, ready}
	main, initial := containersOf(st)
	for _, c := range main {
		out.ContainerStatuses = append(out.ContainerStatuses, containerStatusOf(c))
	}
	for _, c := range initial {
		out.InitContainerStatuses = append(out.InitContainerStatuses, containerStatusOf(c))
	}
	return out
}

// containersOf are the reports of a member's containers, and of its init containers and sidecars;
// none before the first report.
func containersOf(st *records.ShownMember) (main, initial []records.ContainerReport) {
	if st.Report == nil {
		return nil, nil
	}
	for _, c := range st.Report.Containers {
		if c.Role == spec.RoleMain {
			main = append(main, c)
			continue
		}
		initial = append(initial, c)
	}
	return main, initial
}

// podPhase follows the rule of the kubelet for containers that are always restarted: Pending
// while one has never been started, then Running; once nothing is left of the life, Succeeded
// if all containers ended with 0, else Failed.
func podPhase(st *records.ShownMember) string {
	containers, _ := containersOf(st)
	if st.Phase.Over() {
		for _, c := range containers {
			if c.ExitCode == nil || *c.ExitCode != 0 {
				return "Failed"
			}
		}
		if st.Phase == records.PhaseFailed || len(containers) == 0 {
			return "Failed"
		}
		return "Succeeded"
	}
	for _, c := range containers {
		if c.State == "Waiting" && c.Restarts == 0 && c.ExitCode == nil {
			return "Pending"
		}
	}
	if len(containers) == 0 {
		return "Pending"
	}
	return "Running"
}

func containerStatusOf(c records.ContainerReport) containerStatus {
	state, word := containerState{Reason: string(c.Cause)}, "terminated"
	switch c.State {
	case "Running":
		state, word = containerState{StartedAt: c.Started}, "running"
	case "Waiting":
		word, state.Reason = "waiting", cmp.Or(state.Reason, "ContainerCreating")
	default:
		state.ExitCode, state.Reason = c.ExitCode, cmp.Or(state.Reason, ended(c.ExitCode))
	}
	completed := c.Role == spec.RoleInit && word == "terminated" && c.ExitCode != nil && *c.ExitCode == 0
	return containerStatus{
		Name: c.Name, Image: c.Image, Ready: c.Ready || completed, Started: c.State == "Running", RestartCount: c.Restarts,
		State: map[string]containerState{word: state},
	}
}

// ended is Kubernetes' word for how a container ended.
func ended(exit *int) string {
	if exit != nil && *exit == 0 {
		return "Completed"
	}
	return "Error"
}
