package main

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// serviceRow is as kubectl prints it.
func serviceRow(o *shown[spec.ServiceSpec, any]) (cells, wide []any) {
	s := &o.Spec
	ports := joined(s.Ports, portText)
	notReady := "omitted"
	if s.PublishNotReadyAddresses {
		notReady = "published"
	}
	return []any{o.Metadata.Name, s.Type, cmp.Or(s.ClusterIP, "<none>"), cmp.Or(s.ExternalName, "<none>"), cmp.Or(ports, "<none>")},
		[]any{pairs(s.Selector), notReady, pairs(o.Metadata.Labels)}
}

// portText is 80/TCP, or 80:30080/TCP with a port of the nodes.
func portText(p spec.ServicePort) string {
	if p.NodePort != 0 {
		return fmt.Sprintf("%d:%d/%s", p.Port, p.NodePort, p.Protocol)
	}
	return fmt.Sprintf("%d/%s", p.Port, p.Protocol)
}

// service describes a service, and the members that each of its ports leads to.
func (d describer) service(ctx context.Context, got *proto.Object) error {
	o, err := decode[spec.ServiceSpec, any](got)
	if err != nil {
		return err
	}
	s := &o.Spec
	members, sets, err := d.selected(ctx, o.Metadata.Namespace, s.Selected())
	if err != nil {
		return err
	}
	affinity, notReady := "None", "omitted"
	if t := s.Affinity(); t > 0 {
		affinity = "ClientIP for " + t.String()
	}
	if s.PublishNotReadyAddresses {
		notReady = "published"
	}
	d.fields(
		"Service", string(o.Metadata.Namespace)+"/"+o.Metadata.Name,
		"Labels", pairs(o.Metadata.Labels),
		"Selector", pairs(s.Selector),
		"Type", s.Type,
		"IP", s.ClusterIP,
		"Affinity", affinity,
		"Not ready", notReady,
	)
	if s.IsAlias() {
		d.fields("ExternalName", s.ExternalName)
	}
	if len(s.Ports) == 0 {
		return nil
	}
	fmt.Fprintln(d.out, "\nPorts:")
	t := newTable(d.out, "NAME", "PORT", "TARGET", "ENDPOINTS")
	for i := range s.Ports {
		p := &s.Ports[i]
		target := strconv.Itoa(int(p.Port))
		if p.TargetPort != nil {
			target = p.TargetPort.String()
		}
		t.row(p.Name, portText(*p), target, cmp.Or(endpointsText(s, p, members, sets), "<none>"))
	}
	return t.flush()
}

// selected are the members that have the labels of a selector, and their sets by name.
func (d describer) selected(ctx context.Context, ns spec.Namespace, selector map[string]string) ([]records.MemberStatus, map[spec.SetName]*spec.SetSpec, error) {
	sets := map[spec.SetName]*spec.SetSpec{}
	if len(selector) == 0 {
		return nil, nil, nil
	}
	got, err := d.control.List(ctx, &proto.ListRequest{Kind: proto.KindMember, Namespace: string(ns), Selector: selectorOf(selector)})
	if err != nil {
		return nil, nil, err
	}
	var members []records.MemberStatus
	for _, p := range got.GetObjects() {
		o, err := decode[any, records.ShownMember](p)
		if err != nil {
			return nil, nil, err
		}
		members = append(members, o.Status.MemberStatus)
		set, _, err := spec.ParseMemberName(o.Metadata.Name)
		if err != nil || sets[set] != nil {
			continue
		}
		of, err := d.control.Get(ctx, &proto.GetRequest{Kind: proto.KindSet, Namespace: string(ns), Name: string(set)})
		if err != nil {
			continue // it is gone meanwhile
		}
		shown, err := decode[spec.SetSpec, records.ShownSet](of)
		if err != nil {
			return nil, nil, err
		}
		sets[set] = &shown.Spec
	}
	return members, sets, nil
}

// selectorOf writes labels as ParseSelector reads them.
func selectorOf(labels map[string]string) string {
	var list []string
	for key, value := range labels {
		list = append(list, key+"="+value)
	}
	slices.Sort(list)
	return strings.Join(list, ",")
}

// endpointsText is where a port of a service leads: address and port of each member that is ready, or need
// not be.
func endpointsText(s *spec.ServiceSpec, p *spec.ServicePort, members []records.MemberStatus, sets map[spec.SetName]*spec.SetSpec) string {
	var list []string
	for _, m := range members {
		name, _, err := spec.ParseMemberName(m.Name)
		set := sets[name]
		if err != nil || set == nil || m.Node == "" || !m.Address.IsValid() || !m.Ready && !s.PublishNotReadyAddresses {
			continue
		}
		if port := p.Target(&set.Template); port != 0 {
			list = append(list, net.JoinHostPort(m.Address.String(), strconv.Itoa(int(port))))
		}
	}
	return strings.Join(list, ",")
}
