package spec

import (
	"regexp"

	"github.com/stead-project/stead/spec/scalar"
)

// Template describes the members' lives: Kubernetes' PodTemplateSpec.
type Template struct {
	Metadata ObjectMeta `json:"metadata,omitempty"`
	Spec     MemberSpec `json:"spec"`
}

// MemberSpec is Kubernetes' PodSpec.
type MemberSpec struct {
	Containers []Container `json:"containers"`
	// InitContainers run one after the other before the containers of a life, each until it
	// exits with 0. One with restartPolicy Always is a sidecar: it runs for the whole life, and the
	// next one starts when its startup probe succeeded.
	InitContainers []Container   `json:"initContainers,omitempty" stead:"since=2"`
	Volumes        []VolumeMedia `json:"volumes,omitempty"`
	// RestartPolicy must be Always.
	RestartPolicy string `json:"restartPolicy,omitempty"`
	// TerminationGracePeriodSeconds is the time from the begin of a stop, with its preStop
	// hooks, to SIGKILL; default 30.
	TerminationGracePeriodSeconds *int64 `json:"terminationGracePeriodSeconds,omitempty"`
	// DNSPolicy is where names are looked up. ClusterFirst (default), ClusterFirstWithHostNet: the
	// node's DNS server, which knows all members and asks the host's servers for the rest. Default:
	// the resolv.conf of the host when the container starts; the node's DNS server stands in for
	// servers on the host's loopback. None: only what dnsConfig says. With hostNetwork, ClusterFirst is
	// Default, and the host's servers are asked as the host asks them.
	DNSPolicy string `json:"dnsPolicy,omitempty" stead:"since=2,except=ClusterFirst|ClusterFirstWithHostNet"`
	// DNSConfig adds name servers, search domains and options; None needs a name server.
	DNSConfig *DNSConfig `json:"dnsConfig,omitempty" stead:"since=2"`
	// HostAliases are further lines of /etc/hosts.
	HostAliases     []HostAlias            `json:"hostAliases,omitempty" stead:"since=2"`
	SecurityContext *MemberSecurityContext `json:"securityContext,omitempty"`
	// ShareProcessNamespace: the containers see each other's processes, and none of theirs has the number 1.
	// Default false. What a container leaves behind when it ends is killed all the same.
	ShareProcessNamespace *bool `json:"shareProcessNamespace,omitempty" stead:"since=2,except=false"`
	// EnableServiceLinks gives containers variables of the namespace's Services when they are created,
	// such as DB_SERVICE_HOST; default true. A change restarts no member, and makes no revision.
	EnableServiceLinks *bool `json:"enableServiceLinks,omitempty"`
	// SetHostnameAsFQDN makes the member's whole name its hostname, as in
	// db-0.db.default.svc.cluster.local; it has at most 64 characters. Default false: db-0.
	SetHostnameAsFQDN *bool `json:"setHostnameAsFQDN,omitempty" stead:"since=2,except=false"`

	// HostNetwork: the containers are in the network of their host, and the member's address is the host's.
	// Its ports are host ports. Needs the operator's permission (stead server --allow-host-network). Default
	// false.
	HostNetwork bool `json:"hostNetwork,omitempty" stead:"since=2"`

	// ImagePullSecrets name Secrets whose credentials are tried where they match the image's registry
	// and path, the longest first; without a match, or without the Secret, it is pulled without.
	ImagePullSecrets []PullSecret `json:"imagePullSecrets,omitempty" stead:"since=2"`

	// NodeSelector holds labels that the node must have.
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	Affinity     *Affinity         `json:"affinity,omitempty"`
	Tolerations  []Toleration      `json:"tolerations,omitempty"`
	// TopologySpreadConstraints come on top of the set's own spread over the nodes.
	TopologySpreadConstraints []Spread `json:"topologySpreadConstraints,omitempty"`

	EphemeralContainers   any     `json:"ephemeralContainers,omitempty" stead:"later"`
	ActiveDeadlineSeconds *int64  `json:"activeDeadlineSeconds,omitempty" stead:"later"`
	NodeName              string  `json:"nodeName,omitempty" stead:"later,zero"`
	HostPID               bool    `json:"hostPID,omitempty" stead:"later,zero"`
	HostIPC               bool    `json:"hostIPC,omitempty" stead:"later,zero"`
	HostUsers             *bool   `json:"hostUsers,omitempty" stead:"later,same=true"`
	HostnameOverride      *string `json:"hostnameOverride,omitempty" stead:"later"`
	ReadinessGates        any     `json:"readinessGates,omitempty" stead:"later,zero"`
	RuntimeClassName      *string `json:"runtimeClassName,omitempty" stead:"later"`
	Overhead              any     `json:"overhead,omitempty" stead:"later,zero"`
	OS                    any     `json:"os,omitempty" stead:"later,same=name:linux"`
	SchedulingGates       any     `json:"schedulingGates,omitempty" stead:"later,zero"`
	ResourceClaims        any     `json:"resourceClaims,omitempty" stead:"later,zero"`
	Resources             any     `json:"resources,omitempty" stead:"later"`

	Hostname                     string  `json:"hostname,omitempty" stead:"ignored,zero"`
	Subdomain                    string  `json:"subdomain,omitempty" stead:"ignored,zero"`
	ServiceAccountName           string  `json:"serviceAccountName,omitempty" stead:"ignored,zero,same=default"`
	ServiceAccount               string  `json:"serviceAccount,omitempty" stead:"ignored,zero,same=default"`
	AutomountServiceAccountToken *bool   `json:"automountServiceAccountToken,omitempty" stead:"ignored,same=false"`
	SchedulerName                string  `json:"schedulerName,omitempty" stead:"ignored,zero,same=default-scheduler"`
	PriorityClassName            string  `json:"priorityClassName,omitempty" stead:"ignored,zero"`
	Priority                     *int32  `json:"priority,omitempty" stead:"ignored,same=0"`
	PreemptionPolicy             *string `json:"preemptionPolicy,omitempty" stead:"ignored,same=Never"`
}

// Container is one container of a member.
type Container struct {
	Name  string `json:"name"`
	Image string `json:"image"`
	// ImagePullPolicy is IfNotPresent, Always or Never. Default: Always for the
	// tag latest or no tag, else IfNotPresent.
	ImagePullPolicy string               `json:"imagePullPolicy,omitempty"`
	Command         []string             `json:"command,omitempty"`
	Args            []string             `json:"args,omitempty"`
	WorkingDir      string               `json:"workingDir,omitempty"`
	Ports           []ContainerPort      `json:"ports,omitempty"`
	Env             []EnvVar             `json:"env,omitempty"`
	EnvFrom         []EnvFromSource      `json:"envFrom,omitempty"`
	Resources       ResourceRequirements `json:"resources,omitempty"`
	VolumeMounts    []VolumeMount        `json:"volumeMounts,omitempty"`
	ReadinessProbe  *Probe               `json:"readinessProbe,omitempty"`
	LivenessProbe   *Probe               `json:"livenessProbe,omitempty"`
	StartupProbe    *Probe               `json:"startupProbe,omitempty"`
	SecurityContext *SecurityContext     `json:"securityContext,omitempty"`
	Lifecycle       *Lifecycle           `json:"lifecycle,omitempty" stead:"since=2"`
	// LeaderProbe tells whether the member leads: while it succeeds, as if /run/stead/self/leader were there. A number on the first line that a
	// command writes to its standard output is the term; otherwise that is 0. Defaults: period 2, failure 1.
	LeaderProbe *Probe `json:"leaderProbe,omitempty" stead:"only,since=3"`
	// StepDown is run when the member says that it leads (/run/stead/self/leader, or leaderProbe) and is to stop for an update, a restart, a
	// drain, a move or a scale-down: before preStop hooks, in time of its own. If it fails, the stop continues.
	StepDown *Hook `json:"stepDown,omitempty" stead:"only,since=3"`
	// RestartPolicy is only for init containers: Always makes a sidecar of it. Without it, it
	// must exit with 0, and is run again until it does.
	RestartPolicy *string `json:"restartPolicy,omitempty" stead:"since=2"`

	VolumeDevices      any  `json:"volumeDevices,omitempty" stead:"later,zero"`
	Stdin              bool `json:"stdin,omitempty" stead:"later,zero"`
	StdinOnce          bool `json:"stdinOnce,omitempty" stead:"later,zero"`
	TTY                bool `json:"tty,omitempty" stead:"later,zero"`
	ResizePolicy       any  `json:"resizePolicy,omitempty" stead:"later,zero"`
	RestartPolicyRules any  `json:"restartPolicyRules,omitempty" stead:"later"`
	Ulimits            any  `json:"ulimits,omitempty" stead:"only,later"`

	TerminationMessagePath   string `json:"terminationMessagePath,omitempty" stead:"ignored,same=/dev/termination-log"`
	TerminationMessagePolicy string `json:"terminationMessagePolicy,omitempty" stead:"ignored,same=File"`
}

// The values of Container.ImagePullPolicy.
const (
	PullIfNotPresent = "IfNotPresent"
	PullAlways       = "Always"
	PullNever        = "Never"
)

// ContainerPort documents a port; named ports get SRV records and may be used by probes.
type ContainerPort struct {
	Name          string `json:"name,omitempty"`
	ContainerPort int32  `json:"containerPort"`
	// Protocol is TCP (default), UDP or SCTP.
	Protocol string `json:"protocol,omitempty"`
	// HostPort, when not 0, is a port of the node, TCP or UDP, that leads to ContainerPort
	// while the life is there. No two lives of a node have the same.
	HostPort int32 `json:"hostPort,omitempty"`
	// HostIP is the address of the node at which HostPort is; "" or 0.0.0.0: each but
	// 127.0.0.0/8 and the members' gateway.
	HostIP string `json:"hostIP,omitempty"`
}

// EnvVar is one variable; $(VAR) in Value refers to earlier ones, $$ escapes.
type EnvVar struct {
	Name      string        `json:"name"`
	Value     string        `json:"value,omitempty"`
	ValueFrom *EnvVarSource `json:"valueFrom,omitempty"`
}

// EnvVarSource: exactly one is set.
type EnvVarSource struct {
	// FieldRef: metadata.name, metadata.namespace, metadata.uid,
	// metadata.labels['k'], metadata.annotations['k'], spec.nodeName,
	// status.podIP, status.podIPs, status.hostIP, status.hostIPs, spec.serviceAccountName ("").
	FieldRef        *FieldRef `json:"fieldRef,omitempty"`
	ConfigMapKeyRef *KeyRef   `json:"configMapKeyRef,omitempty"`
	SecretKeyRef    *KeyRef   `json:"secretKeyRef,omitempty"`
	// ResourceFieldRef: a limit or request of a container, in units of the divisor, rounded up.
	ResourceFieldRef *ResourceFieldRef `json:"resourceFieldRef,omitempty" stead:"since=2"`
	FileKeyRef       any               `json:"fileKeyRef,omitempty" stead:"later"`
}

// FieldRef names a field of the member.
type FieldRef struct {
	APIVersion string `json:"apiVersion,omitempty"`
	FieldPath  string `json:"fieldPath"`
}

var keyedFieldPath = regexp.MustCompile(`^metadata\.(labels|annotations)\['([^']+)'\]$`)

// Keyed splits the path of one label or annotation: metadata.labels['app'] is "labels"
// and "app". Of every other path both are empty.
func (f *FieldRef) Keyed() (of, key string) {
	if m := keyedFieldPath.FindStringSubmatch(f.FieldPath); m != nil {
		return m[1], m[2]
	}
	return "", ""
}

// KeyRef names a key of a ConfigMap or Secret in the set's namespace.
type KeyRef struct {
	Name     string `json:"name"`
	Key      string `json:"key"`
	Optional bool   `json:"optional,omitempty"`
}

// EnvFromSource takes all keys of a ConfigMap or Secret as variables.
type EnvFromSource struct {
	Prefix       string   `json:"prefix,omitempty"`
	ConfigMapRef *NameRef `json:"configMapRef,omitempty"`
	SecretRef    *NameRef `json:"secretRef,omitempty"`
}

// NameRef names a ConfigMap or Secret.
type NameRef struct {
	Name     string `json:"name"`
	Optional bool   `json:"optional,omitempty"`
}

// ResourceRequirements: limits are enforced by cgroups (cpu, memory); requests
// are used for placement.
type ResourceRequirements struct {
	Limits   map[string]scalar.Quantity `json:"limits,omitempty"`
	Requests map[string]scalar.Quantity `json:"requests,omitempty"`
	Claims   any                        `json:"claims,omitempty" stead:"later,zero"`
}

// VolumeMount puts a volume or claim into a container.
type VolumeMount struct {
	Name      string `json:"name"`
	MountPath string `json:"mountPath"`
	ReadOnly  bool   `json:"readOnly,omitempty"`
	// SubPath is a relative path inside the volume, without "..". A directory is made if
	// nothing is there. It is resolved at every start of the container; a symbolic link
	// that leads out of the volume is refused. Needs Linux 5.6.
	SubPath string `json:"subPath,omitempty"`
	// SubPathExpr is a SubPath in which $(VAR) stands for a variable of the container; one that
	// is empty or not there keeps the container from being started. Not beside SubPath.
	SubPathExpr       string `json:"subPathExpr,omitempty" stead:"since=2"`
	MountPropagation  string `json:"mountPropagation,omitempty" stead:"later,same=None"`
	RecursiveReadOnly string `json:"recursiveReadOnly,omitempty" stead:"later,same=Disabled"`
}

// Probe asks a container how it is. Defaults: period 10, timeout 1, success 1, failure 3.
type Probe struct {
	Exec      *ExecAction `json:"exec,omitempty"`
	HTTPGet   *HTTPGet    `json:"httpGet,omitempty"`
	TCPSocket *TCPSocket  `json:"tcpSocket,omitempty"`
	GRPC      *GRPCAction `json:"grpc,omitempty" stead:"since=2"`

	InitialDelaySeconds int32 `json:"initialDelaySeconds,omitempty"`
	PeriodSeconds       int32 `json:"periodSeconds,omitempty"`
	TimeoutSeconds      int32 `json:"timeoutSeconds,omitempty"`
	SuccessThreshold    int32 `json:"successThreshold,omitempty"`
	FailureThreshold    int32 `json:"failureThreshold,omitempty"`
	// TerminationGracePeriodSeconds, of liveness and startup probes only, takes the place of the template's
	// when the probe ends its container; at least 1.
	TerminationGracePeriodSeconds *int64 `json:"terminationGracePeriodSeconds,omitempty" stead:"since=2"`
}

// ExecAction runs a command in the container; exit 0 is success.
type ExecAction struct {
	Command []string `json:"command"`
}

// HTTPGet succeeds on a status from 200 to 399.
type HTTPGet struct {
	Path string `json:"path,omitempty"`
	// Port is a number or the name of a container port.
	Port scalar.PortRef `json:"port"`
	// Host defaults to the member's address.
	Host string `json:"host,omitempty"`
	// Scheme is HTTP (default) or HTTPS (certificates are not verified).
	Scheme      string       `json:"scheme,omitempty"`
	HTTPHeaders []HTTPHeader `json:"httpHeaders,omitempty"`
}

// HTTPHeader is one header of a probe.
type HTTPHeader struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// TCPSocket succeeds when a connection opens.
type TCPSocket struct {
	Port scalar.PortRef `json:"port"`
	Host string         `json:"host,omitempty"`
}
