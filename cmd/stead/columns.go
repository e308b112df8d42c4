package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/spec"
)

// column describes the table of one kind.
type column struct {
	head, wide []string
	row        func(*proto.Object) (cells, wide []any, err error)
}

var columns = map[string]column{
	"set": {
		head: []string{"NAME", "READY", "AVAILABLE", "UPDATED", "STATE", "AGE"},
		wide: []string{"SERVICE", "REVISION", "POLICY"},
		row:  setRow,
	},
	"member": {
		head: []string{"NAME", "READY", "STATE", "RESTARTS", "NODE", "ADDRESS", "AGE"},
		wide: []string{"REVISION", "TOKEN", "WHY"},
		row:  memberRow,
	},
	"volume": {
		head: []string{"NAME", "MEMBER", "CLAIM", "CLASS", "SIZE", "NODE", "FATE", "AGE"},
		wide: []string{"ID", "NUMBER", "USER", "WHY"},
		row:  volumeRow,
	},
	"node": {
		head: []string{"NAME", "STATE", "CPU", "MEMORY", "VERSION"},
		wide: []string{"CLASSES", "UID", "BOOT"},
		row:  nodeRow,
	},
	"service":   {head: []string{"NAME", "PORTS", "NOT-READY", "SELECTOR"}, row: serviceRow},
	"configmap": {head: []string{"NAME", "KEYS"}, row: filesRow},
	"secret":    {head: []string{"NAME", "KEYS"}, row: filesRow},
	"event":     {head: []string{"AGE", "TYPE", "REASON", "MEMBER", "COUNT", "MESSAGE"}, row: eventRow},
	"revision":  {head: []string{"NAME", "SET", "NUMBER", "CAUSE", "AGE"}, row: revisionRow},
}

func setRow(p *proto.Object) (cells, wide []any, err error) {
	var s spec.SetSpec
	var st spec.SetStatus
	o, err := decode(p, &s, &st)
	if err != nil {
		return nil, nil, err
	}
	want := int32(0)
	if s.Replicas != nil {
		want = *s.Replicas
	}
	state := "Available"
	for _, c := range st.Conditions {
		if c.Type == "Available" && c.Status != "True" {
			state = firstOf(c.Reason, "NotAvailable")
		}
	}
	if len(st.Conditions) == 0 {
		state = "New"
	}
	return []any{o.Metadata.Name, fmt.Sprintf("%d/%d", st.ReadyReplicas, want), st.AvailableReplicas, st.UpdatedReplicas,
			state, age(o.Metadata.CreationTimestamp)},
		[]any{s.ServiceName, st.UpdateRevision, s.PodManagementPolicy}, nil
}

func memberRow(p *proto.Object) (cells, wide []any, err error) {
	var m spec.MemberStatus
	if _, err := decode(p, nil, &m); err != nil {
		return nil, nil, err
	}
	ready := "no"
	if m.Ready {
		ready = "yes"
	}
	state := string(m.Phase)
	switch {
	case m.Goal == spec.GoalStop:
		state = string(spec.PhaseStopping)
	case m.Cause != "":
		state = m.Cause
	case m.Phase == "":
		state = "Waiting"
	}
	address := ""
	if m.Address.IsValid() {
		address = m.Address.String()
	}
	return []any{m.Name, ready, state, m.Restarts, m.Node, address, age(m.BeganAt)},
		[]any{m.Revision, m.Token, firstOf(m.Message, m.Blocked)}, nil
}

func volumeRow(p *proto.Object) (cells, wide []any, err error) {
	var v spec.Volume
	var st struct {
		User string             `json:"user"`
		Said *spec.VolumeReport `json:"said"`
	}
	o, err := decode(p, &v, &st)
	if err != nil {
		return nil, nil, err
	}
	return []any{o.Metadata.Name, v.ID.MemberName(), v.Claim, v.Class, bytesText(v.SizeBytes), v.Node, v.Fate, age(v.CreatedAt)},
		[]any{v.UID, v.Number, st.User, volumeNote(st.Said)}, nil
}

// volumeNote says what a volume waits for that is given up.
func volumeNote(said *spec.VolumeReport) string {
	switch {
	case said == nil:
		return ""
	case said.State == spec.VolumeTrashed:
		left := max(0, said.Left.Duration-time.Since(said.At)).Round(time.Second)
		return "erased in about " + left.String()
	case said.Cause != "":
		return said.Cause + ": " + said.Message
	}
	return string(said.State)
}

func nodeRow(p *proto.Object) (cells, wide []any, err error) {
	var n spec.Node
	var st struct {
		spec.NodeFacts
		State string `json:"state"`
	}
	o, err := decode(p, &n, &st)
	if err != nil {
		return nil, nil, err
	}
	return []any{o.Metadata.Name, st.State, fmt.Sprintf("%.4g", float64(st.CPUMillis)/1000), bytesText(st.MemoryBytes), st.Version},
		[]any{strings.Join(st.ClassNames(), ","), n.UID, st.Boot}, nil
}

func serviceRow(p *proto.Object) (cells, wide []any, err error) {
	var s spec.ServiceSpec
	o, err := decode(p, &s, nil)
	if err != nil {
		return nil, nil, err
	}
	var ports, labels []string
	for _, q := range s.Ports {
		ports = append(ports, strings.TrimPrefix(fmt.Sprintf("%s:%d/%s", q.Name, q.Port, q.Protocol), ":"))
	}
	for k, v := range s.Selector {
		labels = append(labels, k+"="+v)
	}
	notReady := "left out"
	if s.PublishNotReadyAddresses {
		notReady = "published"
	}
	return []any{o.Metadata.Name, strings.Join(ports, ","), notReady, strings.Join(sorted(labels), ",")}, nil, nil
}

func filesRow(p *proto.Object) (cells, wide []any, err error) {
	var st struct {
		Keys []struct {
			Name string `json:"name"`
		} `json:"keys"`
	}
	o, err := decode(p, nil, &st)
	if err != nil {
		return nil, nil, err
	}
	var keys []string
	for _, k := range st.Keys {
		keys = append(keys, k.Name)
	}
	return []any{o.Metadata.Name, strings.Join(sorted(keys), ",")}, nil, nil
}

func eventRow(p *proto.Object) (cells, wide []any, err error) {
	var e spec.Event
	if _, err := decode(p, &e, nil); err != nil {
		return nil, nil, err
	}
	return []any{age(e.At), e.Type, e.Reason, firstOf(e.Member, string(e.Ref.Name)), e.Count, e.Message}, nil, nil
}

func revisionRow(p *proto.Object) (cells, wide []any, err error) {
	var r spec.Revision
	if _, err := decode(p, &r, nil); err != nil {
		return nil, nil, err
	}
	return []any{r.Hash, r.Ref.Name, r.Number, r.ChangeCause, age(r.CreatedAt)}, nil, nil
}
