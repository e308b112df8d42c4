package tally

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/quota"
	"github.com/stead-project/stead/spec/scalar"
)

func quantity(t *testing.T, text string) scalar.Quantity {
	t.Helper()
	q, err := scalar.ParseQuantity(text)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// asking is a container with "requests.cpu=1 limits.memory=2Gi".
func asking(t *testing.T, words string) spec.Container {
	t.Helper()
	c := spec.Container{Resources: spec.ResourceRequirements{Requests: map[string]scalar.Quantity{}, Limits: map[string]scalar.Quantity{}}}
	for _, word := range strings.Fields(words) {
		name, amount, _ := strings.Cut(word, "=")
		of, resource, _ := strings.Cut(name, ".")
		map[string]map[string]scalar.Quantity{"requests": c.Resources.Requests, "limits": c.Resources.Limits}[of][resource] = quantity(t, amount)
	}
	return c
}

func setOf(name string, replicas int32, containers ...spec.Container) *records.Set {
	s := &records.Set{Ref: spec.SetRef{Namespace: "shop", Name: spec.SetName(name)}}
	s.Spec.Replicas, s.Spec.Template.Spec.Containers = &replicas, containers
	return s
}

func claimTemplate(t *testing.T, name, size string) spec.ClaimTemplate {
	t.Helper()
	return spec.ClaimTemplate{Metadata: spec.ObjectMeta{Name: name},
		Spec: spec.ClaimSpec{Resources: spec.VolumeResources{Requests: map[string]scalar.Quantity{"storage": quantity(t, size)}}}}
}

func member(set string, ordinal int) spec.Identity {
	return spec.Identity{Namespace: "shop", Set: spec.SetName(set), Ordinal: ordinal}
}

func held(sets ...*records.Set) Contents {
	h := Contents{Sets: map[spec.SetName]CountedSet{}, Claims: map[string]*records.ClaimRecord{}, Services: map[string]*records.ServiceRecord{},
		Configs: map[string]*records.ConfigRecord{}, Secrets: map[string]*records.SecretRecord{}}
	for _, s := range sets {
		h.PutSet(s)
	}
	return h
}

func TestWhatANamespaceUses(t *testing.T) {
	always := spec.RestartAlways
	all := "requests.cpu=500m requests.memory=1Gi limits.cpu=1 limits.memory=2Gi"
	db := func(replicas int32) *records.Set {
		s := setOf("db", replicas, asking(t, all))
		s.Spec.VolumeClaimTemplates = []spec.ClaimTemplate{claimTemplate(t, "data", "10Gi")}
		return s
	}
	of := func(change func(*records.Set)) Contents {
		s := db(3)
		change(s)
		return held(s)
	}
	const gi = 1 << 30
	base := map[string]int64{quota.Pods: 3, quota.Sets: 1, quota.RequestsCPU: 1500, quota.RequestsMemory: 3 * gi, quota.LimitsCPU: 3000, quota.LimitsMemory: 6 * gi,
		quota.Volumes: 3, quota.Storage: 30 * gi}
	with := func(pairs ...any) map[string]int64 {
		out := map[string]int64{}
		for k, v := range base {
			out[k] = v
		}
		for i := 0; i < len(pairs); i += 2 {
			out[pairs[i].(string)] = int64(pairs[i+1].(int))
		}
		return out
	}
	partition := int32(2)
	for name, c := range map[string]struct {
		held   Contents
		want   map[string]int64
		unsaid map[string]int64
	}{
		"nothing":                            {held(), map[string]int64{}, nil},
		"members times template, and claims": {held(db(3)), base, nil},
		"reserved ordinals are no members": {of(func(s *records.Set) {
			s.Spec.Ordinals = &spec.Ordinals{Start: 1, Reserved: []spec.OrdinalSpan{{First: 2, Last: 5}}}
		}), base, nil},
		"a set that is being deleted asks for nothing": {of(func(s *records.Set) { s.Deleting = true }), map[string]int64{}, nil},
		"an orphaned one does":                         {of(func(s *records.Set) { s.Orphaned = true }), base, nil},
		"init containers run one after the other, before the others": {of(func(s *records.Set) {
			s.Spec.Template.Spec.InitContainers = []spec.Container{asking(t, "requests.cpu=400m requests.memory=2Gi limits.cpu=1 limits.memory=2Gi"), asking(t, all)}
		}), with(quota.RequestsMemory, 6*gi), nil},
		"sidecars run beside all that comes after them": {of(func(s *records.Set) {
			side, first := asking(t, all), asking(t, "requests.cpu=2 requests.memory=1Gi limits.cpu=2 limits.memory=1Gi")
			side.RestartPolicy = &always
			s.Spec.Template.Spec.InitContainers = []spec.Container{side, first}
		}), with(quota.RequestsCPU, 7500, quota.RequestsMemory, 6*gi, quota.LimitsCPU, 9000, quota.LimitsMemory, 12*gi), nil},
		"a container that does not say": {of(func(s *records.Set) {
			s.Spec.Template.Spec.Containers = append(s.Spec.Template.Spec.Containers, asking(t, "requests.cpu=500m requests.memory=1Gi limits.memory=2Gi"))
		}), with(quota.RequestsCPU, 3000, quota.RequestsMemory, 6*gi, quota.LimitsMemory, 12*gi), map[string]int64{quota.LimitsCPU: 3}},
		"below the partition the larger of both revisions counts": {func() Contents {
			s, old := db(3), db(3)
			old.Spec.Template.Spec.Containers = []spec.Container{asking(t, "requests.cpu=1 requests.memory=512Mi limits.cpu=1")}
			s.Spec.UpdateStrategy.RollingUpdate = &spec.RollingUpdate{Partition: &partition}
			h := held()
			h.Sets["db"] = CountedSet{Set: s, Current: &records.Revision{Template: old.Spec.Template}}
			return h
		}(), with(quota.RequestsCPU, 2500), map[string]int64{quota.LimitsMemory: 2}},
		"each member asks for its own": {of(func(s *records.Set) {
			s.Spec.Members = spec.Differences{
				{Ordinals: []spec.OrdinalSpan{{First: 0, Last: 0}, {First: 2, Last: 9}}, Resources: &spec.ResourceRequirements{Requests: map[string]scalar.Quantity{"memory": quantity(t, "2Gi")}}},
				{Ordinals: []spec.OrdinalSpan{{First: 1, Last: 1}}, Env: []spec.EnvVar{{Name: "A"}}},
			}
		}), with(quota.RequestsMemory, 5*gi), nil},
		"below the partition the larger of what the member runs and is to run": {func() Contents {
			s, old := db(3), db(3)
			s.Spec.UpdateStrategy.RollingUpdate = &spec.RollingUpdate{Partition: &partition}
			d := spec.Differences{{Ordinals: []spec.OrdinalSpan{{First: 0, Last: 0}, {First: 2, Last: 2}}, Resources: &spec.ResourceRequirements{Requests: map[string]scalar.Quantity{"memory": quantity(t, "3Gi")}}}}
			h := held()
			h.Sets["db"] = CountedSet{Set: s, Current: &records.Revision{Template: old.Spec.Template, Members: d}}
			return h
		}(), with(quota.RequestsMemory, 5*gi), nil},
		"a volume counts once, with the larger size": {func() Contents {
			h := held(db(3))
			h.Volumes = []CountedVolume{{member("db", 0), "data", 20 * gi}, {member("db", 1), "data", 5 * gi}}
			return h
		}(), with(quota.Storage, 40*gi), nil},
		"volumes that stay after their member, or their set, count": {func() Contents {
			h := held(db(3))
			h.Volumes = []CountedVolume{{member("db", 7), "data", 10 * gi}, {member("gone", 0), "data", 10 * gi}}
			return h
		}(), with(quota.Volumes, 5, quota.Storage, 50*gi), nil},
		"claims, with and without a volume": {func() Contents {
			h := held()
			for _, name := range []string{"a", "b"} {
				h.Claims[name] = &records.ClaimRecord{Meta: records.Meta{Namespace: "shop", Name: name}, Spec: claimTemplate(t, name, "1Gi").Spec}
			}
			h.Claims["c"] = &records.ClaimRecord{Meta: records.Meta{Namespace: "shop", Name: "c"}, Spec: claimTemplate(t, "c", "1Gi").Spec, Deleting: true}
			h.Volumes = []CountedVolume{{spec.ClaimIdentity("shop", "a"), "a", gi}}
			return h
		}(), map[string]int64{quota.Volumes: 2, quota.Storage: 2 * gi}, nil},
		"services, configmaps and secrets": {func() Contents {
			h := held()
			h.Services["a"] = &records.ServiceRecord{Spec: spec.ServiceSpec{Type: "LoadBalancer", Ports: []spec.ServicePort{{NodePort: 30001}, {NodePort: 30002}, {}}}}
			h.Services["b"] = &records.ServiceRecord{}
			h.Configs["c"] = &records.ConfigRecord{Files: map[string]scalar.Bytes{"a.conf": []byte("1234"), "b": nil}}
			h.Secrets["s"] = &records.SecretRecord{Sealed: []byte("12345678")}
			return h
		}(), map[string]int64{quota.Services: 2, quota.NodePorts: 2, quota.LoadBalancers: 1, quota.ConfigMaps: 1, quota.ConfigMapBytes: 11, quota.Secrets: 1, quota.SecretBytes: 8}, nil},
		"more than can be counted": {of(func(s *records.Set) {
			s.Spec.Template.Spec.Containers[0].Resources.Requests["cpu"] = scalar.Quantity{Milli: math.MaxInt64 - 1}
		}), with(quota.RequestsCPU, math.MaxInt64), nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := c.held.Totals()
			for resource, n := range got.Amounts {
				if n == 0 {
					delete(got.Amounts, resource)
				}
			}
			want := Totals{Amounts: c.want, Unsaid: c.unsaid}
			if want.Unsaid == nil {
				want.Unsaid = map[string]int64{}
			}
			if !reflect.DeepEqual(want, got) {
				t.Errorf("got  %v\nwant %v", got, want)
			}
		})
	}
}

func TestWhatAQuotaRefuses(t *testing.T) {
	hard := func(pairs ...string) *records.QuotaRecord {
		q := &records.QuotaRecord{Meta: records.Meta{Namespace: "shop", Name: "team"}, Spec: quota.ResourceQuotaSpec{Hard: map[string]scalar.Quantity{}}}
		for i := 0; i < len(pairs); i += 2 {
			q.Spec.Hard[pairs[i]] = quantity(t, pairs[i+1])
		}
		return q
	}
	use := func(pairs ...any) Totals {
		u := Totals{Amounts: map[string]int64{}, Unsaid: map[string]int64{}}
		for i := 0; i < len(pairs); i += 2 {
			if name, is := strings.CutPrefix(pairs[i].(string), "unsaid "); is {
				u.Unsaid[name] = int64(pairs[i+1].(int))
			} else {
				u.Amounts[pairs[i].(string)] = int64(pairs[i+1].(int))
			}
		}
		return u
	}
	const says = "exceeds ResourceQuota shop/team: "
	for name, c := range map[string]struct {
		before, after Totals
		quotas        []*records.QuotaRecord
		want          []string
	}{
		"up to it goes":                        {use("pods", 1), use("pods", 3), []*records.QuotaRecord{hard("pods", "3")}, nil},
		"beyond it does not":                   {use("pods", 2), use("pods", 4), []*records.QuotaRecord{hard("pods", "3")}, []string{says + "pods: used 2, asked for 2 more, hard 3"}},
		"beyond it already, and less of it":    {use("pods", 9), use("pods", 8), []*records.QuotaRecord{hard("pods", "3")}, nil},
		"beyond it already, and as much":       {use("pods", 9, "services", 1), use("pods", 9, "services", 2), []*records.QuotaRecord{hard("pods", "3")}, nil},
		"beyond it already, and more":          {use("pods", 9), use("pods", 10), []*records.QuotaRecord{hard("pods", "3")}, []string{says + "pods: used 9, asked for 1 more, hard 3"}},
		"what it does not name is not bounded": {use(), use("services", 99), []*records.QuotaRecord{hard("pods", "3")}, nil},
		"of two names the lower number holds":  {use(), use(quota.RequestsCPU, 1500), []*records.QuotaRecord{hard("cpu", "1", "requests.cpu", "2")}, []string{says + "requests.cpu: used 0, asked for 1500m more, hard 1"}},
		"sizes in words":                       {use(quota.Storage, 1<<30), use(quota.Storage, 3<<30), []*records.QuotaRecord{hard("requests.storage", "2Gi")}, []string{says + "requests.storage: used 1Gi, asked for 2Gi more, hard 2Gi"}},
		"each of several holds": {use(), use("pods", 4), []*records.QuotaRecord{hard("pods", "9"), hard("pods", "3"), hard("count/pods", "2")},
			[]string{says + "pods: used 0, asked for 4 more, hard 3", says + "pods: used 0, asked for 4 more, hard 2"}},
		"zero allows none": {use(), use("services", 1), []*records.QuotaRecord{hard("services", "0")}, []string{says + "services: used 0, asked for 1 more, hard 0"}},
		"more members that do not say": {use("unsaid requests.cpu", 1), use("unsaid requests.cpu", 2), []*records.QuotaRecord{hard("requests.cpu", "9")},
			[]string{"ResourceQuota shop/team bounds requests.cpu, and there is a container without it"}},
		"as many that do not say":             {use("unsaid requests.cpu", 2), use("unsaid requests.cpu", 2), []*records.QuotaRecord{hard("requests.cpu", "9")}, nil},
		"that do not say what is not bounded": {use(), use("unsaid limits.cpu", 2), []*records.QuotaRecord{hard("requests.cpu", "9")}, nil},
		"a resource of a later version":       {use(), use("pods", 1), []*records.QuotaRecord{hard("count/unknown", "0")}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, e := range Exceeded(c.before, c.after, c.quotas) {
				got = append(got, e.String())
			}
			if !reflect.DeepEqual(c.want, got) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

func TestWhichContainerDoesNotSay(t *testing.T) {
	var tpl spec.Template
	tpl.Spec.InitContainers = []spec.Container{asking(t, "requests.cpu=1"), asking(t, "limits.cpu=1 requests.cpu=1")}
	tpl.Spec.Containers = []spec.Container{asking(t, "requests.cpu=1 limits.cpu=1"), asking(t, "limits.cpu=1")}
	for resource, want := range map[string]string{quota.LimitsCPU: "initContainers[0]", quota.RequestsCPU: "containers[1]", quota.RequestsMemory: "initContainers[0]", quota.HugePages2Mi: "", quota.Pods: ""} {
		if got := Unsaid(&tpl, resource); got != want {
			t.Errorf("%s: got %q, want %q", resource, got, want)
		}
	}
}
