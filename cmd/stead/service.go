package main

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// serviceRow is as kubectl prints it.
func serviceRow(o *shown[spec.ServiceSpec, records.ShownService]) (cells, wide []any) {
	s := &o.Spec
	ports := joined(s.Ports, portText)
	notReady := "omitted"
	if s.PublishNotReadyAddresses {
		notReady = "published"
	}
	return []any{o.Metadata.Name, s.Type, cmp.Or(s.ClusterIP, "<none>"), outsideText(o), cmp.Or(ports, "<none>")},
		[]any{pairs(s.Selector), notReady, pairs(o.Metadata.Labels)}
}

// outsideText is where clients outside reach a service, as kubectl prints it.
func outsideText(o *shown[spec.ServiceSpec, records.ShownService]) string {
	var list []string
	for _, i := range o.Status.LoadBalancer.Ingress {
		list = append(list, i.IP.String())
	}
	list = append(list, o.Spec.ExternalIPs...)
	none := "<none>"
	if o.Spec.Type == "LoadBalancer" {
		none = "<pending>"
	}
	return cmp.Or(o.Spec.ExternalName, strings.Join(list, ","), none)
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
	o, err := decode[spec.ServiceSpec, records.ShownService](got)
	if err != nil {
		return err
	}
	s := &o.Spec
	endpoints, err := d.endpoints(ctx, o.Metadata.Namespace, o.Metadata.Name)
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
		"External IP", outsideText(o),
		"Affinity", affinity,
		"Not ready", notReady,
	)
	if s.IsAlias() {
		d.fields("ExternalName", s.ExternalName)
	}
	if s.IsReachedOutside() {
		d.fields("Ext policy", cmp.Or(s.ExternalTrafficPolicy, "Cluster"))
	}
	if s.HealthCheckNodePort != 0 {
		d.fields("Health port", fmt.Sprint(s.HealthCheckNodePort))
	}
	if len(s.LoadBalancerSourceRanges) > 0 {
		d.fields("Led from", strings.Join(s.LoadBalancerSourceRanges, ","))
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
		t.row(p.Name, portText(*p), target, cmp.Or(strings.Join(endpoints[portKey{p.Name, cmp.Or(p.Protocol, "TCP")}], ","), "<none>"))
	}
	return t.flush()
}
