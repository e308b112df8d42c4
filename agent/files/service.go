package files

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/stead-project/stead/records"
)

// serviceVariables are those by which Kubernetes tells a container, when it is created, of the services of
// its namespace: its own, and those of Docker's links.
func serviceVariables(services []records.ServiceLink, v *variables) {
	for _, s := range services {
		if len(s.Ports) == 0 {
			continue
		}
		prefix, host := variableName(s.Name), s.Address.String()
		v.set(prefix+"_SERVICE_HOST", host)
		v.set(prefix+"_SERVICE_PORT", strconv.Itoa(int(s.Ports[0].Port)))
		for _, p := range s.Ports {
			if p.Name != "" {
				v.set(prefix+"_SERVICE_PORT_"+variableName(p.Name), strconv.Itoa(int(p.Port)))
			}
		}
		for i, p := range s.Ports {
			port, protocol := strconv.Itoa(int(p.Port)), strings.ToLower(p.Protocol)
			url := protocol + "://" + net.JoinHostPort(host, port)
			if i == 0 {
				v.set(prefix+"_PORT", url)
			}
			of := fmt.Sprintf("%s_PORT_%s_%s", prefix, port, strings.ToUpper(p.Protocol))
			v.set(of, url)
			v.set(of+"_PROTO", protocol)
			v.set(of+"_PORT", port)
			v.set(of+"_ADDR", host)
		}
	}
}

func variableName(s string) string { return strings.ToUpper(strings.ReplaceAll(s, "-", "_")) }
