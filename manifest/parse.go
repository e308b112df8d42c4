package manifest

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/netpol"
	"github.com/stead-project/stead/spec/quota"
)

// Source is a file of manifests; Name is shown in problems ("-": stdin).
type Source struct {
	Name    string
	Content []byte
}

// Options of Parse.
type Options struct {
	// Namespace is that of objects which name none; empty: DefaultNamespace.
	Namespace spec.Namespace
	// SkipUnsupported leaves out objects of kinds that Stead does not have, with a
	// warning, instead of refusing them.
	SkipUnsupported bool
	// Selector leaves out, unread, the objects whose labels it does not choose; nil: none.
	Selector *spec.LabelSelector
	// Host is what the operator lets members do with their hosts.
	Host spec.HostAccess
	// Domain is the DNS domain of the cluster; "": names of hosts are not checked for their length.
	Domain string
	// LoadBalancers: Services of type LoadBalancer get addresses for clients outside.
	LoadBalancers bool
}

// Objects are what files hold, by kind, each in the order of the files. All are
// valid, have their namespace and defaults filled in, when Parse had no problem.
type Objects struct {
	Sets       []spec.StatefulSet
	Services   []spec.Service
	Budgets    []spec.PodDisruptionBudget
	Policies   []netpol.NetworkPolicy
	Quotas     []quota.ResourceQuota
	Claims     []spec.PersistentVolumeClaim
	Endpoints  []records.Endpoints
	Slices     []records.EndpointSlice
	ConfigMaps []spec.ConfigMap
	Secrets    []spec.Secret

	positions map[objectKey]*position
	seen      map[spec.SetRef]SeenSet
}

type objectKey struct {
	kind      string
	namespace spec.Namespace
	name      string
}

// Locate gives problems of one object that was parsed into o (such as those of
// ValidateUpdate) their file, line and column.
func (o *Objects) Locate(kind string, namespace spec.Namespace, name string, problems []Problem) []Problem {
	at, known := o.positions[objectKey{kind, namespace, name}]
	if !known {
		return problems
	}
	return at.fill(slices.Clone(problems))
}

// Parse reads manifests strictly: it fills defaults, validates, and returns all
// problems at once, sorted by position, and warnings. With any problem nothing of
// the objects may be used. It never panics, whatever the content.
func Parse(files []Source, opts Options) (Objects, []Problem, []Problem) {
	if opts.Namespace == "" {
		opts.Namespace = spec.DefaultNamespace
	}
	p := &parser{opts: opts}
	p.out.positions, p.out.seen = map[objectKey]*position{}, map[spec.SetRef]SeenSet{}
	found, warned := make([][]Problem, len(files)), make([][]Problem, len(files)) // by source
	for i, f := range files {
		p.problems, p.warnings = nil, nil
		unreadable := readDocuments(f, func(d *document) {
			d.source = i
			p.object(d, "", d.root, 0)
		})
		found[i], warned[i] = append(p.problems, unreadable...), p.warnings
	}
	var problems, warnings []Problem
	for i := range files {
		problems = append(problems, sortProblems(found[i])...)
		warnings = append(warnings, sortProblems(warned[i])...)
	}
	warnings = append(counted(warnings), p.left.summary(len(p.out.Sets) > 0)...)
	if p.objects == 0 && len(problems) == 0 {
		problems = append(problems, noObjects(files, p.unchosen))
	}
	return p.out, problems, warnings
}

// noObjects is the problem of sources without a single object; unchosen are those that a selector
// left out.
func noObjects(files []Source, unchosen int) Problem {
	names := make([]string, 0, len(files))
	for _, f := range files {
		names = append(names, f.Name)
	}
	if unchosen > 0 {
		return Problem{File: strings.Join(names, ", "), What: fmt.Sprintf("the selector chooses none of the %d %s", unchosen, plural("object", unchosen)),
			Fix: "it is compared with metadata.labels of each object"}
	}
	return Problem{File: strings.Join(names, ", "), What: "contains no objects",
		Fix: "write at least one; empty standard input often means that the command before the pipe failed"}
}

// parser gathers the objects and problems of all sources.
type parser struct {
	opts               Options
	out                Objects
	problems, warnings []Problem
	nodes              int // objects and lists
	objects            int
	unchosen           int // objects that the selector left out
	left               leftOut
}

// object reads one object, or each of a List.
func (p *parser) object(doc *document, base string, root *yaml.Node, depth int) {
	d := newDecoder(doc, base, root)
	p.nodes++
	if p.nodes > maxDocuments {
		if p.nodes == maxDocuments+1 {
			d.fail(root, "", fmt.Sprintf("more than %d objects", maxDocuments), "apply them in parts")
		}
		p.keep(d)
		return
	}
	root = deref(root)
	if root.Kind != yaml.MappingNode {
		d.fail(root, "", "the document is "+describe(root)+", not a mapping", "write apiVersion, kind, metadata and spec")
		p.keep(d)
		return
	}
	kind, version := scalarText(child(root, "kind")), scalarText(child(root, "apiVersion"))
	if kind == "List" && version == "v1" && depth < 2 {
		p.list(doc, d, base, root, depth)
		p.keep(d)
		return
	}
	if p.opts.Selector != nil && !p.opts.Selector.Matches(labelsOf(root)) {
		p.unchosen++
		return
	}
	p.objects++
	d.kind, d.stead = kind, version == "stead/v1"
	if p.known(d, root, kind, version) {
		p.decode(d, doc, root, kind)
	}
	p.keep(d)
}

func (p *parser) keep(d *decoder) {
	for i := range d.warnings {
		d.warnings[i].kind, d.warnings[i].object = d.kind, p.objects
	}
	p.problems = append(p.problems, d.problems...)
	p.warnings = append(p.warnings, d.warnings...)
}

func (p *parser) list(doc *document, d *decoder, base string, root *yaml.Node, depth int) {
	for _, e := range d.entries(root, "", 0) {
		if !slices.Contains([]string{"apiVersion", "kind", "metadata", "items"}, e.name) {
			d.fail(e.key, showKey(e.name), "unknown field", "known here: apiVersion, items, kind, metadata")
		}
	}
	items := child(root, "items")
	switch {
	case items == nil || isNull(deref(items)):
		return
	case deref(items).Kind != yaml.SequenceNode:
		d.wrongType(items, "items", "a list")
		return
	}
	for i, item := range deref(items).Content {
		if item.Kind == yaml.AliasNode {
			d.fail(item, fmt.Sprintf("items[%d]", i), "is an alias", "write the object out")
			continue
		}
		p.object(doc, fmt.Sprintf("%sitems[%d].", base, i), item, depth+1)
	}
}

// scalarText is the text of a scalar; other nodes have none.
func scalarText(n *yaml.Node) string {
	if n == nil || deref(n).Kind != yaml.ScalarNode || isNull(deref(n)) {
		return ""
	}
	return deref(n).Value
}

// decode reads an object of a known kind, checks it and keeps it.
func (p *parser) decode(d *decoder, doc *document, root *yaml.Node, kind string) {
	c := &checks{host: p.opts.Host, domain: p.opts.Domain, balanced: p.opts.LoadBalancers}
	var meta *spec.ObjectMeta
	d.secret = kind == "Secret"
	read := func(object any, m *spec.ObjectMeta) {
		d.value(root, reflect.ValueOf(object).Elem(), "", 0)
		m.Namespace = cmp.Or(m.Namespace, p.opts.Namespace)
		c.dropLastApplied(m)
		meta = m
	}
	switch kind {
	case "StatefulSet":
		s := added(&p.out.Sets)
		read(s, &s.Metadata)
		d.steadAnnotation(doc, root, s)
		d.forgetShadowed(&s.Spec)
		fillSet(s)
		d.forgetSubdomain(root, s.Spec.ServiceName)
		setChecks{c}.statefulSet(s)
		dropWithoutEffect(&s.Spec)
		p.out.seen[spec.SetRef{Namespace: meta.Namespace, Name: spec.SetName(meta.Name)}] = d.seenSet(root)
	case "Service":
		s := added(&p.out.Services)
		read(s, &s.Metadata)
		spec.DefaultService(&s.Spec)
		c.service(s)
		dropUnusedOfService(s, p.opts.LoadBalancers)
	case "PodDisruptionBudget":
		s := added(&p.out.Budgets)
		read(s, &s.Metadata)
		c.budget(s)
		s.APIVersion = "policy/v1"
	case "NetworkPolicy":
		s := added(&p.out.Policies)
		read(s, &s.Metadata)
		netpol.Default(&s.Spec)
		policyChecks{c}.networkPolicy(s)
		s.APIVersion = networkPolicies
	case "ResourceQuota":
		s := added(&p.out.Quotas)
		read(s, &s.Metadata)
		quotaChecks{c}.resourceQuota(s)
	case "PersistentVolumeClaim":
		s := added(&p.out.Claims)
		read(s, &s.Metadata)
		s.Spec.VolumeMode = cmp.Or(s.Spec.VolumeMode, "Filesystem")
		setChecks{c}.claimObject(s)
	case "Endpoints":
		s := added(&p.out.Endpoints)
		read(s, &s.Metadata)
		for i := range s.Subsets {
			records.DefaultEndpointPorts(s.Subsets[i].Ports)
		}
		endpointChecks{c}.endpoints(s)
	case "EndpointSlice":
		s := added(&p.out.Slices)
		read(s, &s.Metadata)
		records.DefaultEndpointPorts(s.Ports)
		endpointChecks{c}.endpointSlice(s)
	case "ConfigMap":
		s := added(&p.out.ConfigMaps)
		read(s, &s.Metadata)
		c.configMap(s)
	case "Secret":
		s := added(&p.out.Secrets)
		read(s, &s.Metadata)
		s.Type = cmp.Or(s.Type, "Opaque")
		c.secret(s)
	}
	d.problems = append(d.problems, d.at.fill(d.newProblems(c))...)
	d.warnings = append(d.warnings, d.at.fill(c.warnings.list)...)
	p.once(d, root, kind, meta)
}

// added appends an empty object; the pointer holds until the next one is added.
func added[T any](list *[]T) *T {
	*list = append(*list, *new(T))
	return &(*list)[len(*list)-1]
}

// fillSet fills the defaults of a manifest.
func fillSet(s *spec.StatefulSet) {
	spec.Default(&s.Spec)
	s.Spec.ServiceName = cmp.Or(s.Spec.ServiceName, s.Metadata.Name)
}

// once reports an object that was given before, else it records its position.
func (p *parser) once(d *decoder, root *yaml.Node, kind string, meta *spec.ObjectMeta) {
	key := objectKey{kind, meta.Namespace, meta.Name}
	if first, twice := p.out.positions[key]; twice && meta.Name != "" {
		d.fail(root, "metadata.name", fmt.Sprintf("%s %s/%s is given twice", kind, showKey(string(meta.Namespace)), showKey(meta.Name)),
			fmt.Sprintf("first at %s:%d", first.file, first.start.line))
		return
	}
	p.out.positions[key] = &d.at
}

// newProblems returns the problems found by c, except for fields that already have a
// problem of the decoder.
func (d *decoder) newProblems(c *checks) []Problem {
	list := slices.DeleteFunc(c.oneOf.list, func(p Problem) bool {
		for path := range d.bad {
			if strings.HasPrefix(path, p.Path+".") {
				return true
			}
		}
		return false
	})
	return slices.DeleteFunc(append(list, c.problems.list...), func(p Problem) bool {
		for path := p.Path; path != ""; path = parentPath(path) {
			if d.bad[path] {
				return true
			}
		}
		return d.bad[""]
	})
}
