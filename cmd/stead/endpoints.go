package main

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// portKey is what a port of a service and those of its endpoints have in common.
type portKey struct{ name, protocol string }

// endpointsRow is as kubectl prints it.
func endpointsRow(o *shown[any, any]) (cells, wide []any) {
	var list []string
	for i := range o.Subsets {
		s := &o.Subsets[i]
		for _, a := range s.Addresses {
			if len(s.Ports) == 0 {
				list = append(list, a.IP)
			}
			for _, p := range s.Ports {
				list = append(list, hostPort(a.IP, p.Port))
			}
		}
	}
	return []any{o.Metadata.Name, firstThree(list, "<none>")}, []any{pairs(o.Metadata.Labels)}
}

// sliceRow is as kubectl prints it.
func sliceRow(o *shown[any, any]) (cells, wide []any) {
	var ports, addresses []string
	for _, p := range o.Ports {
		ports = append(ports, strconv.Itoa(int(p.Port)))
	}
	for i := range o.Endpoints {
		addresses = append(addresses, o.Endpoints[i].Addresses...)
	}
	return []any{o.Metadata.Name, o.AddressType, firstThree(ports, "<unset>"), firstThree(addresses, "<unset>")}, []any{pairs(o.Metadata.Labels)}
}

// firstThree are the first of a list, and how many more there are.
func firstThree(list []string, none string) string {
	const most = 3
	if len(list) > most {
		return fmt.Sprintf("%s + %d more...", strings.Join(list[:most], ","), len(list)-most)
	}
	return cmp.Or(strings.Join(list, ","), none)
}

// endpoints are where the ports of a service lead: its Endpoints, which the server derives for one with a selector,
// and its EndpointSlices.
func (d describer) endpoints(ctx context.Context, ns spec.Namespace, name string) (map[portKey][]string, error) {
	at := map[portKey][]string{}
	add := func(ports []records.EndpointPort, ip string) {
		for _, p := range ports {
			key := portKey{p.Name, cmp.Or(p.Protocol, "TCP")}
			if to := hostPort(ip, p.Port); !slices.Contains(at[key], to) {
				at[key] = append(at[key], to)
			}
		}
	}
	got, err := d.control.Get(ctx, &proto.GetRequest{Kind: proto.KindEndpoints, Namespace: string(ns), Name: name})
	if err != nil && status.Code(err) != codes.NotFound {
		return nil, err
	}
	if err == nil {
		o, err := decode[any, any](got)
		if err != nil {
			return nil, err
		}
		for i := range o.Subsets {
			for _, a := range o.Subsets[i].Addresses {
				add(o.Subsets[i].Ports, a.IP)
			}
		}
	}
	list, err := d.control.List(ctx, &proto.ListRequest{Kind: proto.KindSlice, Namespace: string(ns), Selector: records.ServiceNameLabel + "=" + name})
	if err != nil {
		return nil, err
	}
	for _, p := range list.GetObjects() {
		o, err := decode[any, any](p)
		if err != nil {
			return nil, err
		}
		for i := range o.Endpoints {
			for _, ip := range o.Endpoints[i].Addresses {
				if o.Endpoints[i].IsReady() {
					add(o.Ports, ip)
				}
			}
		}
	}
	return at, nil
}

func hostPort(ip string, port int32) string { return net.JoinHostPort(ip, strconv.Itoa(int(port))) }
