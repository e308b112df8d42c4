package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

func setRow(p *proto.Object) (cells, wide []any, err error) {
	var s spec.SetSpec
	var st records.ShownSet
	o, err := decode(p, &s, &st)
	if err != nil {
		return nil, nil, err
	}
	strategy := s.UpdateStrategy.Type
	if r := s.UpdateStrategy.RollingUpdate; strategy == spec.RollingUpdateStrategy && r != nil && r.Partition != nil && *r.Partition > 0 {
		strategy += fmt.Sprintf("/%d", *r.Partition)
	}
	return []any{o.Metadata.Name, fmt.Sprintf("%d/%d", st.ReadyReplicas, replicasOf(&s)), st.UpdatedReplicas, st.AvailableReplicas,
			strategy, st.UpdateRevision, setState(&st), age(o.Metadata.CreationTimestamp)},
		[]any{s.ServiceName, s.PodManagementPolicy, st.CurrentRevision, images(&s.Template), selectorText(s.Selector)}, nil
}

// setState is the state of a set in one word: Orphaned, or that of the first condition
// that is not as it should be.
func setState(st *records.ShownSet) string {
	if st.Orphaned {
		return "Orphaned"
	}
	state := "Available"
	if len(st.Conditions) == 0 {
		state = "New"
	}
	for _, c := range st.Conditions {
		switch {
		case c.Type == "Available" && c.Status != "True" && state == "Available":
			state = firstOf(c.Reason, "NotAvailable")
		case c.Type == "Stalled" && c.Status == "True":
			state = c.Type
		case c.Type == "Progressing" && c.Status == "False" && c.Reason != "" && c.Reason != "Complete" && state == "Available":
			state = c.Reason
		}
	}
	return state
}

func memberRow(p *proto.Object) (cells, wide []any, err error) {
	var m records.Member
	var st records.ShownMember
	if _, err := decode(p, &m, &st); err != nil {
		return nil, nil, err
	}
	var images []string
	if st.Report != nil {
		for _, c := range st.Report.Containers {
			images = append(images, c.Image)
		}
	}
	row := st.MemberStatus
	return []any{row.Name, yesNo(row.Ready), phaseText(row), row.Restarts, age(row.BeganAt), row.Node, addressText(row), row.Revision,
			blockedText(row)},
		[]any{row.Token, m.Reason, strings.Join(images, ",")}, nil
}

func yesNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}

// phaseText is the phase of a member's life; Waiting if it has no life.
func phaseText(m records.MemberStatus) string {
	if m.Goal == records.GoalStop && !m.Phase.Over() {
		return string(records.PhaseStopping)
	}
	return firstOf(string(m.Phase), "Waiting")
}

func addressText(m records.MemberStatus) string {
	if !m.Address.IsValid() {
		return ""
	}
	return m.Address.String()
}

// blockedText is what a member waits for, or what is wrong with it.
func blockedText(m records.MemberStatus) string {
	if m.Blocked == "" && m.Cause != "" {
		return string(m.Cause) + ": " + m.Message
	}
	return m.Blocked
}

func volumeRow(p *proto.Object) (cells, wide []any, err error) {
	var v records.Volume
	var st records.ShownVolume
	o, err := decode(p, &v, &st)
	if err != nil {
		return nil, nil, err
	}
	return []any{o.Metadata.Name, v.ID.MemberName(), v.Claim, v.Class, bytesText(v.SizeBytes), v.Node, v.Fate, age(v.CreatedAt)},
		[]any{v.UID, v.Number, st.User, volumeNote(st)}, nil
}

func nodeRow(p *proto.Object) (cells, wide []any, err error) {
	var n records.Node
	st := records.ShownNode{NodeFacts: &records.NodeFacts{}}
	o, err := decode(p, &n, &st)
	if err != nil {
		return nil, nil, err
	}
	state := silenceText(&st)
	if n.Cordon {
		state += ",Cordoned"
	}
	var taints []string
	for _, t := range n.Taints {
		taints = append(taints, t.String())
	}
	return []any{o.Metadata.Name, state, fmt.Sprintf("%.4g", float64(st.CPUMillis)/1000), bytesText(st.MemoryBytes), st.Version},
		[]any{st.Lives, fmt.Sprintf("%.4g", float64(st.AskedCPUMillis)/1000), bytesText(st.AskedMemoryBytes), pairs(n.Labels), strings.Join(taints, ","),
			st.HostIP, strings.Join(st.ClassNames(), ","), n.UID, st.Boot, st.Waits}, nil
}

// silenceText is a node's state, and for how long the answering server has seen it.
func silenceText(s *records.ShownNode) string {
	if s.SilentSeconds == 0 {
		return s.State
	}
	return s.State + " " + span(time.Duration(s.SilentSeconds)*time.Second)
}

func serviceRow(p *proto.Object) (cells, wide []any, err error) {
	var s spec.ServiceSpec
	o, err := decode(p, &s, nil)
	if err != nil {
		return nil, nil, err
	}
	var ports []string
	for _, q := range s.Ports {
		ports = append(ports, strings.TrimPrefix(fmt.Sprintf("%s:%d/%s", q.Name, q.Port, q.Protocol), ":"))
	}
	notReady := "omitted"
	if s.PublishNotReadyAddresses {
		notReady = "published"
	}
	return []any{o.Metadata.Name, strings.Join(ports, ","), notReady, pairs(s.Selector)}, []any{pairs(o.Metadata.Labels)}, nil
}

func budgetRow(p *proto.Object) (cells, wide []any, err error) {
	var s spec.BudgetSpec
	o, err := decode(p, &s, nil)
	if err != nil {
		return nil, nil, err
	}
	text := func(v *scalar.IntOrPercent) string {
		if v == nil {
			return ""
		}
		return v.String()
	}
	var labels map[string]string
	if s.Selector != nil {
		labels = s.Selector.MatchLabels
	}
	return []any{o.Metadata.Name, text(s.MinAvailable), text(s.MaxUnavailable), pairs(labels)}, []any{pairs(o.Metadata.Labels)}, nil
}

func filesRow(p *proto.Object) (cells, wide []any, err error) {
	var st records.ShownFiles
	o, err := decode(p, nil, &st)
	if err != nil {
		return nil, nil, err
	}
	var keys []string
	for _, k := range st.Keys {
		keys = append(keys, k.Name)
	}
	return []any{o.Metadata.Name, strings.Join(sorted(keys), ",")}, []any{o.Metadata.Generation, pairs(o.Metadata.Labels)}, nil
}

func eventRow(p *proto.Object) (cells, wide []any, err error) {
	var e records.Event
	if _, err := decode(p, &e, nil); err != nil {
		return nil, nil, err
	}
	return []any{age(e.At), e.Type, e.Reason, firstOf(e.Member, string(e.Ref.Name)), e.Count, e.Message}, nil, nil
}

func revisionRow(p *proto.Object) (cells, wide []any, err error) {
	var r records.Revision
	if _, err := decode(p, &r, nil); err != nil {
		return nil, nil, err
	}
	return []any{r.Hash, r.Ref.Name, r.Number, r.ChangeCause, age(r.CreatedAt)}, []any{images(&r.Template)}, nil
}

// images are those of a template's containers.
func images(t *spec.Template) string {
	var out []string
	for _, c := range t.Spec.Containers {
		out = append(out, c.Image)
	}
	return strings.Join(out, ",")
}

// pairs writes labels as k=v, sorted.
func pairs(labels map[string]string) string {
	var out []string
	for k, v := range labels {
		out = append(out, k+"="+v)
	}
	return strings.Join(sorted(out), ",")
}

func selectorText(s *spec.LabelSelector) string {
	if s == nil {
		return ""
	}
	text := pairs(s.MatchLabels)
	for _, e := range s.MatchExpressions {
		text += fmt.Sprintf(",%s %s (%s)", e.Key, e.Operator, strings.Join(e.Values, ","))
	}
	return strings.TrimPrefix(text, ",")
}
