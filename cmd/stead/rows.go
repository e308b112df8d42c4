package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/netpol"
	"github.com/stead-project/stead/spec/scalar"
)

// column describes the table of one kind.
type column struct {
	head, wide []string
	row        func(*proto.Object) (cells, wide []any, err error)
}

var columns = map[string]column{
	proto.KindSet: {
		head: []string{"NAME", "READY", "UPDATED", "AVAILABLE", "STRATEGY", "REVISION", "STATE", "AGE"},
		wide: []string{"SERVICE", "POLICY", "CURRENT", "IMAGES", "SELECTOR"},
		row:  rowOf(setRow),
	},
	proto.KindMember: {
		head: []string{"NAME", "READY", "PHASE", "RESTARTS", "AGE", "NODE", "ADDRESS", "REVISION", "ROLE", "BLOCKED"},
		wide: []string{"MOVE", "TOKEN", "REASON", "IMAGES", "NOTE"},
		row:  rowOf(memberRow),
	},
	proto.KindVolume: {
		head: []string{"NAME", "MEMBER", "CLAIM", "CLASS", "SIZE", "NODE", "FATE", "AGE"},
		wide: []string{"USED", "LEFT", "ID", "NUMBER", "USER", "WHY"},
		row:  rowOf(volumeRow),
	},
	proto.KindNode: {
		head: []string{"NAME", "STATE", "CPU", "MEMORY", "VERSION"},
		wide: []string{"MEMBERS", "CPU REQUESTED", "MEMORY REQUESTED", "LABELS", "TAINTS", "CONDITIONS", "ADDRESS", "CLASSES", "UID", "BOOT", "WAITS"},
		row:  rowOf(nodeRow),
	},
	proto.KindService:       {head: []string{"NAME", "TYPE", "CLUSTER-IP", "EXTERNAL-IP", "PORT(S)"}, wide: []string{"SELECTOR", "NOT-READY", "LABELS"}, row: rowOf(serviceRow)},
	proto.KindEndpoints:     {head: []string{"NAME", "ENDPOINTS"}, wide: []string{"LABELS"}, row: rowOf(endpointsRow)},
	proto.KindSlice:         {head: []string{"NAME", "ADDRESSTYPE", "PORTS", "ENDPOINTS"}, wide: []string{"LABELS"}, row: rowOf(sliceRow)},
	proto.KindBudget:        {head: []string{"NAME", "MIN AVAILABLE", "MAX UNAVAILABLE", "SELECTOR"}, wide: []string{"LABELS"}, row: rowOf(budgetRow)},
	proto.KindNetworkPolicy: {head: []string{"NAME", "POD-SELECTOR"}, wide: []string{"TYPES", "LABELS"}, row: rowOf(networkPolicyRow)},
	proto.KindQuota:         {head: []string{"NAME", "USED/HARD"}, wide: []string{"LABELS"}, row: rowOf(quotaRow)},
	proto.KindConfigMap:     {head: []string{"NAME", "KEYS"}, wide: []string{"GENERATION", "LABELS"}, row: rowOf(filesRow)},
	proto.KindSecret:        {head: []string{"NAME", "KEYS"}, wide: []string{"GENERATION", "LABELS"}, row: rowOf(filesRow)},
	proto.KindEvent:         {head: []string{"AGE", "TYPE", "REASON", "MEMBER", "COUNT", "MESSAGE"}, row: rowOf(eventRow)},
	proto.KindRevision:      {head: []string{"NAME", "SET", "NUMBER", "CAUSE", "AGE"}, wide: []string{"IMAGES"}, row: rowOf(revisionRow)},
}

// rowOf is the row of what the server shows, as cells makes it.
func rowOf[S, T any](cells func(*shown[S, T]) (cells, wide []any)) func(*proto.Object) ([]any, []any, error) {
	return func(p *proto.Object) ([]any, []any, error) {
		o, err := decode[S, T](p)
		if err != nil {
			return nil, nil, err
		}
		row, wide := cells(o)
		return row, wide, nil
	}
}

func setRow(o *shownSet) (cells, wide []any) {
	s, st := &o.Spec, &o.Status
	strategy := s.UpdateStrategy.Type
	if r := s.UpdateStrategy.RollingUpdate; strategy == spec.RollingUpdateStrategy && r != nil && r.Partition != nil && *r.Partition > 0 {
		strategy += fmt.Sprintf("/%d", *r.Partition)
	}
	return []any{o.Metadata.Name, fmt.Sprintf("%d/%d", st.ReadyReplicas, replicasOf(s)), st.UpdatedReplicas, st.AvailableReplicas,
			strategy, st.UpdateRevision, setState(st), age(o.Metadata.CreationTimestamp)},
		[]any{s.ServiceName, s.PodManagementPolicy, st.CurrentRevision, images(&s.Template), selectorText(s.Selector)}
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
			state = cmp.Or(c.Reason, "NotAvailable")
		case c.Type == "Stalled" && c.Status == "True":
			state = c.Type
		case c.Type == "Progressing" && c.Status == "False" && c.Reason != "" && c.Reason != "Complete" && state == "Available":
			state = c.Reason
		}
	}
	return state
}

func memberRow(o *shownMember) (cells, wide []any) {
	images := ""
	if main, _ := containersOf(&o.Status); len(main) > 0 {
		images = joined(main, func(c records.ContainerReport) string { return c.Image })
	}
	row := o.Status.MemberStatus
	return []any{row.Name, yesNo(row.Ready), phaseText(row), row.Restarts, age(row.BeganAt), row.Node, addressText(row), row.Revision,
			o.Status.Role, blockedText(row)},
		[]any{moveText(o.Status.Move), row.Token, o.Spec.Reason, images, claimOf(&o.Status).Note}
}

// claimOf is what a member says of itself.
func claimOf(st *records.ShownMember) (c records.Claim) {
	if st.Report != nil {
		c = st.Report.Claim
	}
	return c
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
	return cmp.Or(string(m.Phase), "Waiting")
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

func volumeRow(o *shownVolume) (cells, wide []any) {
	v, st := &o.Spec, &o.Status
	member := v.ID.MemberName()
	if _, is := v.ID.Ref().ClaimName(); is {
		member = "" // it belongs to no member
	}
	return []any{o.Metadata.Name, member, v.Claim, v.Class, bytesText(v.SizeBytes), v.Node, v.Fate, age(v.CreatedAt)},
		[]any{usedText(st.Use), leftText(st.Use), v.UID, v.Number, st.User, volumeNote(*st)}
}

func nodeRow(o *shownNode) (cells, wide []any) {
	n, st := &o.Spec, &o.Status
	if st.NodeFacts == nil {
		st.NodeFacts = &records.NodeFacts{}
	}
	state := silenceText(st)
	if n.Cordon {
		state += ",Cordoned"
	}
	if n.Drain != nil {
		state += ",Drain"
	}
	return []any{o.Metadata.Name, state, fmt.Sprintf("%.4g", float64(st.CPUMillis)/1000), bytesText(st.MemoryBytes), st.Version},
		[]any{st.Lives, fmt.Sprintf("%.4g", float64(st.AskedCPUMillis)/1000), bytesText(st.AskedMemoryBytes), pairs(n.Labels), joined(n.Taints, spec.Taint.String), strings.ReplaceAll(st.ShortOf(), " ", ""),
			st.HostIP, strings.Join(st.ClassNames(), ","), n.UID, st.Boot, st.Waits}
}

// silenceText is a node's state, and for how long the answering server has seen it.
func silenceText(s *records.ShownNode) string {
	if s.SilentSeconds == 0 {
		return s.State
	}
	return s.State + " " + span(time.Duration(s.SilentSeconds)*time.Second)
}

func budgetRow(o *shown[spec.BudgetSpec, any]) (cells, wide []any) {
	s := &o.Spec
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
	return []any{o.Metadata.Name, text(s.MinAvailable), text(s.MaxUnavailable), pairs(labels)}, []any{pairs(o.Metadata.Labels)}
}

func networkPolicyRow(o *shown[netpol.NetworkPolicySpec, any]) (cells, wide []any) {
	selects := "<none>" // as kubectl says of one that selects all
	if !netpol.IsEmpty(&o.Spec.PodSelector) {
		selects = selectorText(&o.Spec.PodSelector)
	}
	return []any{o.Metadata.Name, selects}, []any{strings.Join(o.Spec.PolicyTypes, ","), pairs(o.Metadata.Labels)}
}

func filesRow(o *shown[any, records.ShownFiles]) (cells, wide []any) {
	var keys []string
	for _, k := range o.Status.Keys {
		keys = append(keys, k.Name)
	}
	return []any{o.Metadata.Name, strings.Join(slices.Sorted(slices.Values(keys)), ",")}, []any{o.Metadata.Generation, pairs(o.Metadata.Labels)}
}

func eventRow(o *shown[records.Event, any]) (cells, wide []any) {
	e := &o.Spec
	return []any{age(e.At), e.Type, e.Reason, cmp.Or(e.Member, string(e.Ref.Name)), e.Count, e.Message}, nil
}

func revisionRow(o *shown[records.Revision, any]) (cells, wide []any) {
	r := &o.Spec
	return []any{r.Hash, r.Ref.Name, r.Number, r.ChangeCause, age(r.CreatedAt)}, []any{images(&r.Template)}
}

// joined is what text says of each in list, separated by commas.
func joined[T any](list []T, text func(T) string) string {
	var words []string
	for _, x := range list {
		words = append(words, text(x))
	}
	return strings.Join(words, ",")
}

// images are those of a template's containers.
func images(t *spec.Template) string {
	return joined(t.Spec.Containers, func(c spec.Container) string { return c.Image })
}

// pairs writes labels as k=v, sorted.
func pairs(labels map[string]string) string {
	return joined(slices.Sorted(maps.Keys(labels)), func(k string) string { return k + "=" + labels[k] })
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
