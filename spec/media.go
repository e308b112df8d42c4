package spec

import (
	"cmp"
	"maps"
	"slices"

	"github.com/stead-project/stead/spec/scalar"
)

// VolumeMedia is one volume of a template (Kubernetes' Volume): a source of files
// that lives as long as one life. Storage that outlives it is a ClaimTemplate, or a
// PersistentVolumeClaim.
type VolumeMedia struct {
	Name      string           `json:"name"`
	EmptyDir  *EmptyDir        `json:"emptyDir,omitempty"`
	ConfigMap *ConfigMapVolume `json:"configMap,omitempty"`
	Secret    *SecretVolume    `json:"secret,omitempty"`
	// Projected shows ConfigMaps, Secrets and facts of the member in one directory.
	Projected *ProjectedVolume `json:"projected,omitempty" stead:"since=2"`
	// DownwardAPI shows facts of the member as files.
	DownwardAPI *DownwardAPIVolume `json:"downwardAPI,omitempty" stead:"since=2"`
	// HostPath shows a file or directory of the host. Needs the operator's permission (stead server
	// --allow-host-path).
	HostPath *HostPathVolume `json:"hostPath,omitempty" stead:"since=2"`

	// PersistentVolumeClaim mounts the volume of a claim of the namespace.
	PersistentVolumeClaim *ClaimVolume `json:"persistentVolumeClaim,omitempty" stead:"since=2"`

	Ephemeral any `json:"ephemeral,omitempty" stead:"later"`
	CSI       any `json:"csi,omitempty" stead:"later"`
	NFS       any `json:"nfs,omitempty" stead:"later"`
	ISCSI     any `json:"iscsi,omitempty" stead:"later"`
	FC        any `json:"fc,omitempty" stead:"later"`
	Image     any `json:"image,omitempty" stead:"later"`

	AWSElasticBlockStore any `json:"awsElasticBlockStore,omitempty" stead:"later"`
	AzureDisk            any `json:"azureDisk,omitempty" stead:"later"`
	AzureFile            any `json:"azureFile,omitempty" stead:"later"`
	CephFS               any `json:"cephfs,omitempty" stead:"later"`
	Cinder               any `json:"cinder,omitempty" stead:"later"`
	FlexVolume           any `json:"flexVolume,omitempty" stead:"later"`
	Flocker              any `json:"flocker,omitempty" stead:"later"`
	GCEPersistentDisk    any `json:"gcePersistentDisk,omitempty" stead:"later"`
	GitRepo              any `json:"gitRepo,omitempty" stead:"later"`
	Glusterfs            any `json:"glusterfs,omitempty" stead:"later"`
	PhotonPersistentDisk any `json:"photonPersistentDisk,omitempty" stead:"later"`
	PortworxVolume       any `json:"portworxVolume,omitempty" stead:"later"`
	Quobyte              any `json:"quobyte,omitempty" stead:"later"`
	RBD                  any `json:"rbd,omitempty" stead:"later"`
	ScaleIO              any `json:"scaleIO,omitempty" stead:"later"`
	StorageOS            any `json:"storageos,omitempty" stead:"later"`
	VsphereVolume        any `json:"vsphereVolume,omitempty" stead:"later"`
}

// EmptyDir is an empty directory of one life, on disk or (Memory) on tmpfs.
type EmptyDir struct {
	// Medium is "" (disk) or Memory.
	Medium string `json:"medium,omitempty"`
	// SizeLimit bounds a Memory volume, as the limits of the member's memory do; default: these.
	// On disk it has no effect.
	SizeLimit *scalar.Quantity `json:"sizeLimit,omitempty"`
}

// MediumMemory is the value of EmptyDir.Medium for a tmpfs.
const MediumMemory = "Memory"

// ConfigMapVolume shows a ConfigMap as files.
type ConfigMapVolume struct {
	Name  string      `json:"name"`
	Items []KeyToPath `json:"items,omitempty"`
	// DefaultMode is the permission bits of the files; default 0644.
	DefaultMode *int32 `json:"defaultMode,omitempty"`
	Optional    bool   `json:"optional,omitempty"`
}

// SecretVolume shows a Secret as files on tmpfs.
type SecretVolume struct {
	SecretName string      `json:"secretName"`
	Items      []KeyToPath `json:"items,omitempty"`
	// DefaultMode is the permission bits of the files; default 0644.
	DefaultMode *int32 `json:"defaultMode,omitempty"`
	Optional    bool   `json:"optional,omitempty"`
}

// KeyToPath picks one key and names its file.
type KeyToPath struct {
	Key  string `json:"key"`
	Path string `json:"path"`
	Mode *int32 `json:"mode,omitempty"`
}

// Service gives a DNS name to members selected by labels.
type Service struct {
	APIVersion string      `json:"apiVersion"`
	Kind       string      `json:"kind"`
	Metadata   ObjectMeta  `json:"metadata"`
	Spec       ServiceSpec `json:"spec"`
	Status     any         `json:"status,omitempty" stead:"ignored"`
}

// ServiceSpec of a headless service; a ClusterIP service is answered like a
// headless one, with a warning.
type ServiceSpec struct {
	// ClusterIP is None, or anything (warning).
	ClusterIP string            `json:"clusterIP,omitempty"`
	Selector  map[string]string `json:"selector,omitempty"`
	Ports     []ServicePort     `json:"ports,omitempty"`
	// PublishNotReadyAddresses puts members into the service's records before they are ready.
	PublishNotReadyAddresses bool `json:"publishNotReadyAddresses,omitempty"`
	// Type is ClusterIP (default); LoadBalancer and NodePort mean the same, with a warning.
	Type string `json:"type,omitempty"`

	ClusterIPs                    any `json:"clusterIPs,omitempty" stead:"ignored"`
	IPFamilies                    any `json:"ipFamilies,omitempty" stead:"ignored"`
	IPFamilyPolicy                any `json:"ipFamilyPolicy,omitempty" stead:"ignored,same=SingleStack"`
	InternalTrafficPolicy         any `json:"internalTrafficPolicy,omitempty" stead:"ignored,same=Cluster"`
	SessionAffinity               any `json:"sessionAffinity,omitempty" stead:"ignored,same=None"`
	ExternalName                  any `json:"externalName,omitempty" stead:"ignored,zero"`
	ExternalIPs                   any `json:"externalIPs,omitempty" stead:"later,zero"`
	ExternalTrafficPolicy         any `json:"externalTrafficPolicy,omitempty" stead:"ignored,same=Cluster"`
	LoadBalancerIP                any `json:"loadBalancerIP,omitempty" stead:"ignored,zero"`
	LoadBalancerClass             any `json:"loadBalancerClass,omitempty" stead:"ignored"`
	LoadBalancerSourceRanges      any `json:"loadBalancerSourceRanges,omitempty" stead:"ignored,zero"`
	AllocateLoadBalancerNodePorts any `json:"allocateLoadBalancerNodePorts,omitempty" stead:"ignored,same=true|false"`
	HealthCheckNodePort           any `json:"healthCheckNodePort,omitempty" stead:"ignored,zero"`
	SessionAffinityConfig         any `json:"sessionAffinityConfig,omitempty" stead:"ignored,zero"`
	TrafficDistribution           any `json:"trafficDistribution,omitempty" stead:"ignored"`
}

// ServicePort is a port of a service; named ones have SRV records.
type ServicePort struct {
	Name string `json:"name,omitempty"`
	Port int32  `json:"port"`
	// Protocol is TCP (default), UDP or SCTP.
	Protocol string `json:"protocol,omitempty"`
	// TargetPort is the number, or the name, of the members' port. With clusterIP None it is
	// what SRV records show and clients use; else it must be Port, because no proxy translates.
	TargetPort  *scalar.PortRef `json:"targetPort,omitempty"`
	AppProtocol *string         `json:"appProtocol,omitempty" stead:"ignored"`
	NodePort    any             `json:"nodePort,omitempty" stead:"ignored,zero"`
}

// Headless reports whether clients are meant to connect to members by their own addresses.
func (s *ServiceSpec) Headless() bool { return s.ClusterIP == "None" }

// Reached are the ports at which clients reach the members of t: of a headless service the
// target ports, as in the endpoints of Kubernetes, where a named port that t does not have is
// left out. The result may be s's own slice.
func (s *ServiceSpec) Reached(t *Template) []ServicePort {
	if !s.Headless() {
		return s.Ports
	}
	var out []ServicePort
	for _, p := range s.Ports {
		p.Port = p.Target(t)
		if p.Port != 0 {
			out = append(out, p)
		}
	}
	return out
}

// Target is the number of the members' port that p leads to; 0: t has no port of that name
// and protocol.
func (p *ServicePort) Target(t *Template) int32 {
	switch to := p.TargetPort; {
	case to == nil:
		return p.Port
	case to.Name == "":
		return to.Number
	}
	for c := range t.Spec.Lasting() {
		for _, port := range c.Ports {
			if port.Name == p.TargetPort.Name && cmp.Or(port.Protocol, "TCP") == cmp.Or(p.Protocol, "TCP") {
				return port.ContainerPort
			}
		}
	}
	return 0
}

// ConfigMap holds files and variables for members.
type ConfigMap struct {
	APIVersion string                  `json:"apiVersion"`
	Kind       string                  `json:"kind"`
	Metadata   ObjectMeta              `json:"metadata"`
	Data       map[string]string       `json:"data,omitempty"`
	BinaryData map[string]scalar.Bytes `json:"binaryData,omitempty"`
	Status     any                     `json:"status,omitempty" stead:"ignored"` // as get shows it
	// Immutable, once stored, lets neither the content nor itself change: delete the object first.
	Immutable bool `json:"immutable,omitempty"`
}

// Secret holds secret files and variables for members; encrypted in the store.
type Secret struct {
	APIVersion string                  `json:"apiVersion"`
	Kind       string                  `json:"kind"`
	Metadata   ObjectMeta              `json:"metadata"`
	Data       map[string]scalar.Bytes `json:"data,omitempty"`
	StringData map[string]string       `json:"stringData,omitempty"`
	// Type is any word; default Opaque. Secrets of kubernetes.io/dockerconfigjson and
	// kubernetes.io/dockercfg must have the key of their type, for imagePullSecrets.
	Type string `json:"type,omitempty"`
	// Immutable, once stored, lets neither the content nor itself change: delete the object first.
	Immutable bool `json:"immutable,omitempty"`
}

// Files are the contents by name: data and binaryData, whose bytes it shares.
func (c *ConfigMap) Files() map[string]scalar.Bytes {
	files := make(map[string]scalar.Bytes, len(c.Data)+len(c.BinaryData))
	for key, text := range c.Data {
		files[key] = scalar.Bytes(text)
	}
	maps.Copy(files, c.BinaryData)
	return files
}

// Files are the contents by name: data, whose bytes it shares, overlaid by stringData.
func (s *Secret) Files() map[string][]byte {
	files := make(map[string][]byte, len(s.Data)+len(s.StringData))
	for key, content := range s.Data {
		files[key] = content
	}
	for key, text := range s.StringData {
		files[key] = []byte(text)
	}
	return files
}

// Mounts reports whether a container mounts the volume or claim of that name.
func (t *Template) Mounts(volume string) bool {
	for c := range t.Spec.All() {
		if slices.ContainsFunc(c.VolumeMounts, func(m VolumeMount) bool { return m.Name == volume }) {
			return true
		}
	}
	return false
}

// MountsWithout is the name of a volume that a container mounts, and that is neither the
// template's own nor a claim of s; "": there is none.
func (t *Template) MountsWithout(s *SetSpec) string {
	for c := range t.Spec.All() {
		for _, m := range c.VolumeMounts {
			own := slices.ContainsFunc(t.Spec.Volumes, func(v VolumeMedia) bool { return v.Name == m.Name })
			if !own && s.Claim(ClaimName(m.Name)) == nil {
				return m.Name
			}
		}
	}
	return ""
}
