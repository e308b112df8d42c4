package spec

import (
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

// EmptyDir is an empty directory of one life, on disk, on tmpfs (Memory), or in huge pages.
type EmptyDir struct {
	// Medium is "" (disk), Memory, or HugePages, HugePages-2Mi, HugePages-1Gi: huge pages that the containers
	// request, of the only size or of this one.
	Medium string `json:"medium,omitempty" stead:"since=2,except=Memory"`
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
