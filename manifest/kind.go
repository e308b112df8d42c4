package manifest

import (
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

	"PodDisruptionBudget": {"policy/v1"},
}

// skippedKinds have no meaning here; they are skipped with a warning, by
// their API group.
var skippedKinds = map[string]string{
	"ServiceAccount":     "",
	"Namespace":          "",
	"Role":               "rbac.authorization.k8s.io",
	"RoleBinding":        "rbac.authorization.k8s.io",
	"ClusterRole":        "rbac.authorization.k8s.io",
	"ClusterRoleBinding": "rbac.authorization.k8s.io",
	"NetworkPolicy":      "networking.k8s.io",
	"ServiceMonitor":     "monitoring.coreos.com",
	"PodMonitor":         "monitoring.coreos.com",
}

// known reports whether Stead has this kind; if not, it has added a problem or warning.
func (p *parser) known(d *decoder, root *yaml.Node, kind, version string) bool {
	name := scalarText(child(child(root, "metadata"), "name"))
	title := showKey(kind)
	if name != "" {
		title += " " + scalar.Quote(name)
	}
	group, _, grouped := strings.Cut(version, "/")
	if !grouped {
		group = ""
	}
	at := root
	if n := child(root, "kind"); n != nil {
		at = n
	}
	refuse := func(path, what, fix string) bool {
		if p.opts.SkipUnsupported {
			d.warn(at, path, title+" "+what+"; it is skipped", "")
		} else {
			d.fail(at, path, title+" "+what, fix)
		}
		return false
	}
	skippedGroup, skipped := skippedKinds[kind]
	switch want, ours := kindVersions[kind]; {
	case kind == "" || version == "":
		d.fail(root, "", "apiVersion or kind is missing", "write, as in apiVersion: apps/v1, kind: StatefulSet")
		return false
	case skipped && skippedGroup == group:
		d.warn(at, "kind", title+" is skipped: Stead does not need it", "")
		return false
	case child(child(child(root, "metadata"), "annotations"), "helm.sh/hook") != nil:
		return refuse("metadata.annotations[helm.sh/hook]", "is a Helm hook, which Stead does not run", "render the chart with --no-hooks")
	case !ours:
		return refuse("kind", "is not supported", "Stead knows StatefulSet, Service, ConfigMap, Secret and PodDisruptionBudget")
	case !slices.Contains(want, version):
		d.fail(at, "apiVersion", title+" is not supported in apiVersion "+scalar.Quote(version), "write apiVersion: "+want[0])
		return false
	}
	return true
}
