package manifest

import (
	"fmt"

	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

// maxHookSeconds bounds one run of a hook of the set: a week.
const maxHookSeconds = 7 * 24 * 3600

// memberHooks checks decommission and forget.
func (c setChecks) memberHooks(s *spec.SetSpec) {
	if d := s.Decommission; d != nil {
		h := d.Hook()
		c.memberHook("spec.decommission", s, &h)
		c.choice("spec.decommission.onTimeout", d.OnTimeout, []string{"Wait", "Proceed"})
		c.memberHook("spec.decommission.abort", s, d.Abort)
	}
	c.memberHook("spec.forget", s, s.Forget)
	c.jobs(s)
}

// maxJobs bounds the jobs of a set.
const maxJobs = 16

// jobs checks the jobs of a set.
func (c setChecks) jobs(s *spec.SetSpec) {
	if len(s.Jobs) > maxJobs {
		c.fail("spec.jobs", fmt.Sprintf("has %d jobs", len(s.Jobs)), fmt.Sprintf("write at most %d", maxJobs))
	}
	seen := map[string]bool{}
	for i := range s.Jobs {
		job, at := &s.Jobs[i], fmt.Sprintf("spec.jobs[%d]", i)
		c.label(at+".name", job.Name)
		if seen[job.Name] {
			c.fail(at+".name", scalar.Quote(job.Name)+" is the name of another job", "write another")
		}
		seen[job.Name] = true
		c.choice(at+".after", job.After, []string{"Bootstrapped", "Grown"})
		c.choice(at+".onUnknown", job.OnUnknown, []string{"Wait", "Repeat"})
		h := job.Hook()
		if job.Exec == nil {
			c.fail(at+".exec", "is missing", "write exec: {command: [...]}")
			h.Exec = &spec.ExecAction{Command: []string{"none"}}
		}
		c.memberHook(at, s, &h)
	}
}

// memberHook checks a hook that runs by order of the servers, in a container that runs with the member.
func (c setChecks) memberHook(at string, s *spec.SetSpec, h *spec.MemberHook) {
	if h == nil {
		return
	}
	cc := containerChecks{checks: c.checks}
	ports, known := map[string]bool{}, map[string]bool{}
	for x, role := range s.Template.Spec.All() {
		if role == spec.RoleInit {
			continue
		}
		known[x.Name] = true
		if x.Name == h.Container || h.Container == "" && x.Name == s.Template.Spec.FirstContainer() {
			for _, p := range x.Ports {
				ports[p.Name] = p.Name != ""
			}
		}
	}
	if h.Container != "" && !known[h.Container] {
		c.fail(at+".container", scalar.Quote(h.Container)+" is not a container of the template", names(known))
	}
	c.exactlyOne(at, map[string]bool{"exec": h.Exec != nil, "httpGet": h.HTTPGet != nil})
	cc.execAction(at+".exec", h.Exec)
	cc.httpGet(at+".httpGet", h.HTTPGet, ports)
	c.between(at+".timeoutSeconds", int64(h.TimeoutSeconds), 1, maxHookSeconds)
}
