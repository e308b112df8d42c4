package e2e

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stead-project/stead/test/judge"
)

// A member is looked up by its former and its new name, again and again, while its set's
// service is renamed: the former resolves until the set says that all ran anew, the new
// one from when it was first found. Then the set is let go and adopted, and nobody notices.
func TestARenamedServiceIsFoundUnderBothNamesUntilAllRanAnew(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.startAll(l.toolArchive())
	l.apply("life", lifeSet, "--wait", "--timeout", patience)
	conf := l.path("resolv.conf") // that of the member goes with its life
	l.run("cp", l.findFile(l.path("run"), "resolv.conf", "life-0"), conf)
	resolves := func(name string) bool {
		_, err := l.inside(time.Minute, "unshare", "-m", "sh", "-c", "mount --bind "+conf+" /etc/resolv.conf && getent ahostsv4 "+name)
		return err == nil
	}
	renaming := func() bool { return strings.Contains(l.stead("describe", "set", "life"), "renamed from life") }
	names := []string{"life-0", "life-1", "life-2"}

	renamed := strings.Replace(lifeSet, "serviceName: life", "serviceName: lives", 1)
	l.apply("renamed", renamed, "--rename-service")
	found := map[string]bool{}
	for done := false; !done; {
		done = !renaming()
		for _, name := range names {
			if !resolves(name+".life") && renaming() {
				t.Errorf("%s does not resolve by its former name, and not all ran anew", name)
			}
			if now := resolves(name + ".lives"); !now && found[name] {
				t.Errorf("%s does not resolve by its new name any more", name)
			} else if now {
				found[name] = true
			}
		}
	}
	for _, name := range names {
		l.eventually(time.Minute, name+" has its new name alone", func() error {
			if resolves(name+".life") || !resolves(name+".lives") {
				return errors.New("it has not")
			}
			return nil
		})
		if fqdn := l.stead("exec", name, "--", "/box", "command", "cat", "/run/stead/member.json"); !strings.Contains(fqdn, `"fqdn":"`+name+".lives.default.svc.cluster.local\"") {
			t.Errorf("%s knows itself as %s", name, fqdn)
		}
	}

	lives := func() (all []string) {
		for _, name := range names {
			all = append(all, l.waitReady(name, nil).Status.Token+" "+l.begun(name))
		}
		return all
	}
	was := lives()
	l.stead("delete", "set", "life", "--cascade=orphan")
	l.apply("renamed", renamed, "--wait", "--timeout", patience)
	if now := lives(); !slices.Equal(now, was) {
		judge.Broken(t, "the lives were %v and are %v", was, now)
	}
}
