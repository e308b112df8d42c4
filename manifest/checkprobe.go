package manifest

import (
	"regexp"
	"strings"

	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

// probe checks p, if it is set; single: of liveness and startup, which have the success threshold 1 and may
// end their container.
func (c containerChecks) probe(at string, p *spec.Probe, ports map[string]bool, single bool) {
	if p == nil {
		return
	}
	c.exactlyOne(at, map[string]bool{"exec": p.Exec != nil, "httpGet": p.HTTPGet != nil, "tcpSocket": p.TCPSocket != nil, "grpc": p.GRPC != nil})
	c.execAction(at+".exec", p.Exec)
	c.httpGet(at+".httpGet", p.HTTPGet, ports)
	if p.TCPSocket != nil {
		c.actionPort(at+".tcpSocket.port", p.TCPSocket.Port, ports)
	}
	if p.GRPC != nil {
		c.between(at+".grpc.port", int64(p.GRPC.Port), 1, 65535)
	}
	most := int64(maxSeconds)
	c.between(at+".initialDelaySeconds", int64(p.InitialDelaySeconds), 0, most)
	c.between(at+".periodSeconds", int64(p.PeriodSeconds), 1, most)
	c.between(at+".timeoutSeconds", int64(p.TimeoutSeconds), 1, most)
	c.between(at+".failureThreshold", int64(p.FailureThreshold), 1, most)
	if single {
		most = 1
	}
	c.between(at+".successThreshold", int64(p.SuccessThreshold), 1, most)
	switch grace := p.TerminationGracePeriodSeconds; {
	case grace == nil:
	case !single:
		c.fail(at+".terminationGracePeriodSeconds", "this probe ends no container", "remove it")
	default:
		c.between(at+".terminationGracePeriodSeconds", *grace, 1, maxSeconds)
	}
}

// httpGet checks what is asked by HTTP, if it is set.
func (c containerChecks) httpGet(at string, h *spec.HTTPGet, ports map[string]bool) {
	if h == nil {
		return
	}
	c.actionPort(at+".port", h.Port, ports)
	c.choice(at+".scheme", h.Scheme, []string{"HTTP", "HTTPS"})
	for i, header := range h.HTTPHeaders {
		if !headerName.MatchString(header.Name) || strings.ContainsAny(header.Value, "\r\n\x00") {
			c.fail(index(at+".httpHeaders", i), scalar.Quote(header.Name)+" is not a valid HTTP header", "")
		}
	}
}

var headerName = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")

func (c containerChecks) actionPort(at string, port scalar.PortRef, ports map[string]bool) {
	switch {
	case port == scalar.PortRef{}:
		c.fail(at, "is missing", "")
	case port.Name != "" && !ports[port.Name]:
		c.fail(at, scalar.Quote(port.Name)+" is not a port of this container", names(ports))
	}
}
