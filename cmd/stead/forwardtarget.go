package main

import (
	"cmp"
	"context"
	"fmt"
	"strconv"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// choose finds the member that a target names, or one ready member of a set or of those that a
// service selects, and the numbers of its ports.
func (f *forwarder) choose(ctx context.Context, target string, words []portWords) ([]portPair, error) {
	kind, name, err := parseTarget([]string{target}, proto.KindMember)
	if err != nil {
		return nil, err
	}
	var service *shown[spec.ServiceSpec, any]
	switch kind {
	case proto.KindMember:
		f.member = name
	case proto.KindSet:
		err = f.oneOf(ctx, &proto.ListRequest{Set: name}, "set "+name)
	case proto.KindService:
		var o *proto.Object
		if o, err = f.control.Get(ctx, &proto.GetRequest{Kind: kind, Namespace: f.namespace, Name: name}); err == nil {
			service, err = decode[spec.ServiceSpec, any](o)
		}
		if err == nil {
			err = f.oneOf(ctx, &proto.ListRequest{Selector: pairs(service.Spec.Selected())}, "service "+name)
		}
	default:
		err = misuse("port-forward needs a member, a set or a service, not a %s", kind)
	}
	if err != nil {
		return nil, err
	}
	template, err := f.template(ctx)
	if err != nil {
		return nil, err
	}
	var out []portPair
	for _, w := range words {
		local := w.local
		var number uint16
		if service != nil {
			number, local, err = servicePort(&service.Spec, name, template, w)
		} else {
			number, err = containerPort(template, w.remote)
		}
		if err != nil {
			return nil, fmt.Errorf("member %s: %w", f.member, err)
		}
		p := portPair{number, number}
		if local != "" {
			n, _ := strconv.ParseUint(local, 10, 16) // it was read before
			p.local = uint16(n)
		}
		out = append(out, p)
	}
	return out, nil
}

// oneOf chooses the first ready member that a request lists; whose says of what they are.
func (f *forwarder) oneOf(ctx context.Context, r *proto.ListRequest, whose string) error {
	r.Kind, r.Namespace = proto.KindMember, f.namespace
	if r.GetSet() == "" && r.GetSelector() == "" {
		return fmt.Errorf("%s selects no members", whose)
	}
	members, err := list[records.Member, records.ShownMember](ctx, f.cli, r)
	if err != nil {
		return err
	}
	for _, m := range members {
		if m.Status.Ready {
			f.member = m.Metadata.Name
			return nil
		}
	}
	return fmt.Errorf("%s has no ready member", whose)
}

// template is that of the chosen member's set.
func (f *forwarder) template(ctx context.Context) (*spec.Template, error) {
	name, _, err := spec.ParseMemberName(f.member)
	if err != nil {
		return nil, misuse("%w", err)
	}
	o, err := f.control.Get(ctx, &proto.GetRequest{Kind: proto.KindSet, Namespace: f.namespace, Name: string(name)})
	if err != nil {
		return nil, err
	}
	set, err := decode[spec.SetSpec, any](o)
	if err != nil {
		return nil, err
	}
	return &set.Spec.Template, nil
}

// portNumber reads a number; false: it is a name.
func portNumber(text string) (uint16, bool) {
	n, err := strconv.ParseUint(text, 10, 16)
	return uint16(n), err == nil && n > 0
}

// containerPort is a port of the members: a number, or the name of a container's port.
func containerPort(t *spec.Template, text string) (uint16, error) {
	if n, ok := portNumber(text); ok {
		return n, nil
	}
	for c := range t.Spec.Lasting() {
		for _, p := range c.Ports {
			if p.Name == text {
				return uint16(p.ContainerPort), nil
			}
		}
	}
	return 0, fmt.Errorf("no container has a port named %q", text)
}

// servicePort is the members' port behind a port of a service, and the local port: as in kubectl, of
// a headless service the number is that of the members.
func servicePort(s *spec.ServiceSpec, name string, t *spec.Template, w portWords) (number uint16, local string, err error) {
	asked, isNumber := portNumber(w.remote)
	for i := range s.Ports {
		p := &s.Ports[i]
		if isNumber && p.Port != int32(asked) || !isNumber && p.Name != w.remote {
			continue
		}
		local = cmp.Or(w.local, strconv.Itoa(int(p.Port)))
		to := p.Target(t)
		if s.Headless() && isNumber {
			to = p.Port
		}
		if to == 0 {
			return 0, "", fmt.Errorf("no container has the port %s that port %s of service %s leads to", p.TargetPort.Name, w.remote, name)
		}
		return uint16(to), local, nil
	}
	if s.Headless() && isNumber {
		return asked, w.local, nil
	}
	return 0, "", fmt.Errorf("service %s has no port %s", name, w.remote)
}
