package network

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// Members are IPv4 only. A link with IPv6 would give the host routes and addresses as a
// member advertises them, and nothing would check from which address it sends.
var withoutIPv6 = []struct{ name, value string }{
	{"accept_ra", "0"}, {"autoconf", "0"}, // for when somebody switches IPv6 on for all links
	{"disable_ipv6", "1"},
}

// disableIPv6 takes IPv6 from a link of the namespace at path, before it is up or after. A
// kernel without IPv6 has nothing to take.
func disableIPv6(path, link string) error {
	return inNamespace(path, func() error {
		for _, s := range withoutIPv6 {
			file := sysctlPath("net/ipv6/conf/" + link + "/" + s.name)
			now, err := os.ReadFile(file)
			if errors.Is(err, fs.ErrNotExist) || err == nil && strings.TrimSpace(string(now)) == s.value {
				continue
			}
			if err == nil {
				err = os.WriteFile(file, []byte(s.value), 0)
			}
			if err != nil {
				return fmt.Errorf("take IPv6 from %s: %w", link, err)
			}
		}
		return nil
	})
}

// hasIPv6 reports whether a link of the namespace at path has IPv6.
func hasIPv6(path, link string) (has bool, err error) {
	err = inNamespace(path, func() error {
		now, err := os.ReadFile(sysctlPath("net/ipv6/conf/" + link + "/disable_ipv6"))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		has = strings.TrimSpace(string(now)) != "1"
		return err
	})
	return has, err
}
