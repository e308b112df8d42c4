package spec

import "testing"

func TestAnOperatorAllowsPathsAndSysctls(t *testing.T) {
	h := HostAccess{Paths: []string{"/srv/", "/var/log"}, Sysctls: []string{"net.core.somaxconn", "kernel.shm*"}}
	for path, want := range map[string]bool{
		"/srv": true, "/srv/a": true, "/srv/": true, "/srvx": false, "/": false, "/var": false, "/var/log/db": true, "/var/logs": false,
	} {
		if h.AllowsPath(path) != want || !AnyHostAccess().AllowsPath(path) || (HostAccess{}).AllowsPath(path) {
			t.Errorf("%s: got %v", path, !want)
		}
	}
	for key, want := range map[string]bool{
		"net.core.somaxconn": true, "net.core.somaxconn2": false, "kernel.shmmax": true, "kernel.sem": false, "*": false,
	} {
		if h.AllowsSysctl(key) != want || !AnyHostAccess().AllowsSysctl(key) || (HostAccess{}).AllowsSysctl(key) {
			t.Errorf("%s: got %v", key, !want)
		}
	}
}
