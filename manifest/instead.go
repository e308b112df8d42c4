package manifest

// instead tells, of fields that are refused, what to write, and of ignored ones, why they
// have no effect; by the type that has the field and the field's name. Each field with the
// tag `stead:"later"` has a sentence (TestEveryRefusedFieldSaysWhatToWrite).
var instead = map[string]string{
	"ObjectMeta.generateName":    "write a name",
	"ObjectMeta.finalizers":      "remove it: nothing waits for a finalizer here",
	"ObjectMeta.ownerReferences": "remove it: no object is deleted together with an owner",

	"ObjectMeta.creationTimestamp":          ownWord,
	"ObjectMeta.deletionTimestamp":          ownWord,
	"ObjectMeta.deletionGracePeriodSeconds": ownWord,
	"ObjectMeta.generation":                 ownWord,
	"ObjectMeta.managedFields":              ownWord,
	"ObjectMeta.resourceVersion":            ownWord,
	"ObjectMeta.selfLink":                   ownWord,
	"ObjectMeta.uid":                        ownWord,
	"StatefulSet.status":                    ownWord,
	"Service.status":                        ownWord,
	"ConfigMap.status":                      ownWord,
	"PodDisruptionBudget.status":            ownWord,
	"ClaimTemplate.status":                  ownWord,
	"ResourceQuota.status":                  ownWord,
	"PersistentVolumeClaim.status":          ownWord,

	"SetSpec.onConfigChange": onlyPlanned,

	"ClaimSpec.selector":                  newVolumes,
	"ClaimSpec.volumeName":                newVolumes,
	"ClaimSpec.dataSource":                newVolumes + "; copy the data into it",
	"ClaimSpec.dataSourceRef":             newVolumes + "; copy the data into it",
	"ClaimSpec.volumeAttributesClassName": "remove it: a volume is a directory of its storage class",
	"VolumeResources.limits":              "remove it: requests.storage is the size",

	"MemberSpec.ephemeralContainers":   "remove it: 'stead exec' runs commands in a container",
	"MemberSpec.activeDeadlineSeconds": "remove it: a member runs until it is stopped",
	"MemberSpec.nodeName":              "write nodeSelector: {kubernetes.io/hostname: NODE}",
	"MemberSpec.hostPID":               "remove it: a container sees its own processes only",
	"MemberSpec.hostIPC":               "remove it: containers of a member share memory through an emptyDir with medium: Memory",
	"MemberSpec.hostUsers":             "remove it: there are no user namespaces; write runAsUser",
	"MemberSpec.hostnameOverride":      "remove it: the hostname is the member's name",
	"MemberSpec.readinessGates":        "remove it: a member is ready when the readiness probes of its containers succeed",
	"MemberSpec.runtimeClassName":      "remove it: every container runs with runc",
	"MemberSpec.overhead":              "remove it: members request what their containers request",
	"MemberSpec.os":                    "write name: linux, or remove it",
	"MemberSpec.schedulingGates":       "remove it; replicas: 0 starts no member",
	"MemberSpec.resourceClaims":        noDevices,
	"MemberSpec.resources":             "write resources at the containers",

	"MemberSpec.hostname":                     "each member has its own name as hostname, as in Kubernetes, where the set replaces it",
	"MemberSpec.subdomain":                    "serviceName of the set is the subdomain, as in Kubernetes, where the set replaces it",
	"MemberSpec.serviceAccountName":           noToken,
	"MemberSpec.serviceAccount":               noToken,
	"MemberSpec.automountServiceAccountToken": noToken,
	"MemberSpec.schedulerName":                "Stead itself places members",
	"MemberSpec.priorityClassName":            noPriority,
	"MemberSpec.priority":                     noPriority,
	"MemberSpec.preemptionPolicy":             noPriority,

	"Container.volumeDevices":            "write a claim with volumeMode: Filesystem, and volumeMounts",
	"Container.stdin":                    "remove it: 'stead exec -i -t' opens a terminal",
	"Container.stdinOnce":                "remove it: 'stead exec -i -t' opens a terminal",
	"Container.tty":                      "remove it: 'stead exec -i -t' opens a terminal",
	"Container.resizePolicy":             "remove it: other resources restart the member",
	"Container.restartPolicyRules":       "remove it: a container that ends is started again",
	"Container.ulimits":                  onlyPlanned,
	"Container.terminationMessagePath":   "'stead logs --previous' shows the last output",
	"Container.terminationMessagePolicy": "'stead logs --previous' shows the last output",

	"EnvVarSource.fileKeyRef":       "read the file in the container's command",
	"ResourceRequirements.claims":   noDevices,
	"VolumeMount.mountPropagation":  "write None, or remove it: mounts of a container stay in it",
	"VolumeMount.recursiveReadOnly": "remove it, and write readOnly: true",

	"MemberSecurityContext.seLinuxOptions":      noLabels,
	"MemberSecurityContext.seLinuxChangePolicy": noLabels,
	"MemberSecurityContext.windowsOptions":      "remove it: nodes run Linux",
	"SecurityContext.seLinuxOptions":            noLabels,
	"SecurityContext.procMount":                 "write Default, or remove it: Unmasked needs a user namespace, in Kubernetes too, and members have none",
	"SecurityContext.windowsOptions":            "remove it: nodes run Linux",

	"Toleration.tolerationSeconds": "a taint ends no life",

	"Projection.serviceAccountToken": "remove this source: " + noToken,
	"Projection.clusterTrustBundle":  "write the certificates into a ConfigMap: there is no Kubernetes API for members",

	"VolumeMedia.ephemeral": "write emptyDir, or a volumeClaimTemplate",
	"VolumeMedia.csi":       onNodes,
	"VolumeMedia.nfs":       onNodes,
	"VolumeMedia.iscsi":     onNodes,
	"VolumeMedia.fc":        onNodes,
	"VolumeMedia.image":     "copy the files into the container's own image",

	"VolumeMedia.awsElasticBlockStore": onNodes,
	"VolumeMedia.azureDisk":            onNodes,
	"VolumeMedia.azureFile":            onNodes,
	"VolumeMedia.cephfs":               onNodes,
	"VolumeMedia.cinder":               onNodes,
	"VolumeMedia.flexVolume":           onNodes,
	"VolumeMedia.flocker":              onNodes,
	"VolumeMedia.gcePersistentDisk":    onNodes,
	"VolumeMedia.gitRepo":              "write emptyDir, and an init container that clones into it",
	"VolumeMedia.glusterfs":            onNodes,
	"VolumeMedia.photonPersistentDisk": onNodes,
	"VolumeMedia.portworxVolume":       onNodes,
	"VolumeMedia.quobyte":              onNodes,
	"VolumeMedia.rbd":                  onNodes,
	"VolumeMedia.scaleIO":              onNodes,
	"VolumeMedia.storageos":            onNodes,
	"VolumeMedia.vsphereVolume":        onNodes,

	"BudgetSpec.unhealthyPodEvictionPolicy": "broken members that are out of date are always replaced",

	"ResourceQuotaSpec.scopes":        noScopes,
	"ResourceQuotaSpec.scopeSelector": noScopes,

	"EndpointAddress.targetRef":        "it is for people to read",
	"EndpointPort.appProtocol":         "connections are led as they are, whatever they carry",
	"SliceEndpoint.targetRef":          "it is for people to read",
	"SliceEndpoint.zone":               noProxy,
	"SliceEndpoint.hints":              noProxy,
	"SliceEndpoint.deprecatedTopology": noProxy,

	"ServiceSpec.clusterIPs":          "clusterIP alone counts: a Service has one address",
	"ServiceSpec.ipFamilies":          oneAddress,
	"ServiceSpec.ipFamilyPolicy":      oneAddress,
	"ServiceSpec.trafficDistribution": noProxy,
	"ServiceSpec.loadBalancerClass":   "Stead itself gives addresses, of the servers' --load-balancer-cidr",
	"ServicePort.appProtocol":         "connections are led as they are, whatever they carry",
}

// Sentences of several fields.
const (
	ownWord     = "the server writes it"
	onlyPlanned = "remove it: it is planned for stead/v1"
	newVolumes  = "remove it: a volume is a new directory of its storage class"
	noDevices   = "remove it: members are given no devices"
	noToken     = "members get no token, and there is no Kubernetes API"
	noPriority  = "no member is preferred to another"
	noLabels    = "containers get no SELinux labels"
	onNodes     = "mount it on the nodes, declare it there with --storage-class, and write a volumeClaimTemplate"
	noProxy     = "connections are led to all members that are ready, wherever they run"
	oneAddress  = "a member has one address"
	noScopes    = "remove it: a quota counts all objects of its namespace"
	noBalancer  = "the operator gave no addresses for load balancers (stead server --load-balancer-cidr)"
)
