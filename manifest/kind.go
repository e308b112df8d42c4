package manifest

import (
	"cmp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/stead-project/stead/spec/scalar"
)

// kindVersions are the kinds that Parse reads, with their apiVersions.
var kindVersions = map[string][]string{
	"StatefulSet": {"apps/v1", "stead/v1"},
	"Service":     {"v1"},
	"ConfigMap":   {"v1"},
	"Secret":      {"v1"},

	"PodDisruptionBudget":   {"policy/v1", oldBudgets},
	"PersistentVolumeClaim": {"v1"},
	"Endpoints":             {"v1"},
	"EndpointSlice":         {"discovery.k8s.io/v1"},
	"NetworkPolicy":         {networkPolicies, oldNetworkPolicies},
	"ResourceQuota":         {"v1"},
}

// The API groups of kinds that are left out without a flag.
const (
	rbacGroup       = "rbac.authorization.k8s.io"
	monitoringGroup = "monitoring.coreos.com"
)

// needless are the kinds that change nothing here, by their API groups and how the summary
// speaks of them. All others that are not ours are refused: the application would be
// incomplete without them.
var needless = map[string]struct {
	why    reason
	groups []string
}{
	"ServiceAccount":      {noUse, []string{""}},
	"Namespace":           {noUse, []string{""}},
	"Role":                {noAPI, []string{rbacGroup}},
	"RoleBinding":         {noUse, []string{rbacGroup}},
	"ClusterRole":         {noAPI, []string{rbacGroup}},
	"ClusterRoleBinding":  {noUse, []string{rbacGroup}},
	"ServiceMonitor":      {noUse, []string{monitoringGroup}},
	"PodMonitor":          {noUse, []string{monitoringGroup}},
	"PrometheusRule":      {noUse, []string{monitoringGroup}},
	"Probe":               {noUse, []string{monitoringGroup}},
	"ScrapeConfig":        {noUse, []string{monitoringGroup}},
	"PriorityClass":       {noUse, []string{"scheduling.k8s.io"}},
	"PodSecurityPolicy":   {noUse, []string{"policy", "extensions"}},
	"StorageClass":        {nodesClass, []string{"storage.k8s.io"}},
	"VolumeSnapshotClass": {noUse, []string{"snapshot.storage.k8s.io"}},
}

// insteadOf tells, of kinds that are refused, what to do instead.
var insteadOf = map[string]string{
	"Deployment":              "write it as a StatefulSet",
	"ReplicaSet":              "write it as a StatefulSet",
	"Pod":                     "write it as a StatefulSet",
	"DaemonSet":               "run its program on every host with the hosts' own service manager",
	"Job":                     "do its work by hand, as with 'stead exec'",
	"CronJob":                 "run it from a timer of a host, as with 'stead exec'",
	"PersistentVolume":        "declare its directory on the nodes with --storage-class",
	"Ingress":                 "run a proxy in front of the members, as a StatefulSet with a hostPort",
	"HorizontalPodAutoscaler": "change the number of members with 'stead scale'",
	"Certificate":             "write the Secret that it would create",
}

// known reports whether Stead has this kind; if not, it has left the object out or refused it.
func (p *parser) known(d *decoder, root *yaml.Node, kind, version string) bool {
	group, _, grouped := strings.Cut(version, "/")
	if !grouped {
		group = ""
	}
	name := scalarText(child(child(root, "metadata"), "name"))
	title := showKey(kind)
	if name != "" {
		title += " " + scalar.Quote(name)
	}
	hook := child(child(child(root, "metadata"), "annotations"), "helm.sh/hook")
	leave := func(why reason) bool {
		p.left.add(why, kind, name)
		return false
	}
	refuse := func(at *yaml.Node, path, what, fix string) bool {
		if p.opts.SkipUnsupported {
			return leave(asked)
		}
		d.fail(at, path, title+" "+what, fix+", or leave it out with --skip-unsupported")
		return false
	}
	skipped, isNeedless := needless[kind]
	want, ours := kindVersions[kind]
	switch {
	case kind == "" || version == "":
		d.fail(root, "", "apiVersion or kind is missing", "write, as in apiVersion: apps/v1, kind: StatefulSet")
		return false
	case isNeedless && slices.Contains(skipped.groups, group):
		return leave(skipped.why)
	case hook != nil && isTest(scalarText(hook)):
		return leave(helmTest)
	case hook != nil:
		fix := "do its work by hand, and render the chart with --no-hooks"
		if ours {
			fix = "remove the annotation to apply it with the others"
		}
		return refuse(hook, "metadata.annotations[helm.sh/hook]", "is a Helm hook, which Stead does not run", fix)
	case !ours:
		return refuse(child(root, "kind"), "kind", "is not supported",
			cmp.Or(insteadOf[kind], "Stead has StatefulSet, Service, ConfigMap, Secret, PersistentVolumeClaim, PodDisruptionBudget, NetworkPolicy and ResourceQuota"))
	case !slices.Contains(want, version):
		d.fail(child(root, "apiVersion"), "apiVersion", title+" is not supported in apiVersion "+scalar.Quote(version), "write apiVersion: "+want[0])
		return false
	}
	if version == oldBudgets || version == oldNetworkPolicies {
		d.warn(child(root, "apiVersion"), "apiVersion", "is read as "+want[0], "")
	}
	return true
}

// isTest reports whether all events of a hook's annotation are those of 'helm test'.
func isTest(events string) bool {
	return !slices.ContainsFunc(strings.Split(events, ","), func(e string) bool {
		return !slices.Contains([]string{"test", "test-success", "test-failure"}, strings.TrimSpace(e))
	})
}
