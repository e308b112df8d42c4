package manifest

// plainObjects are manifests without a problem, into which a field is written.
var plainObjects = map[string]string{
	"StatefulSet": `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      initContainers: [{name: first, image: "web:1", restartPolicy: Always}]
      containers: [{name: web, image: "web:1", ports: [{containerPort: 80}], volumeMounts: [{name: data, mountPath: /data}], resources: {limits: {cpu: 8, hugepages-2Mi: 2Mi}}}]
      volumes: [{name: files, emptyDir: {}}]
  volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]
`,
	"Service":   "{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {type: NodePort, sessionAffinity: ClientIP, selector: {app: web}, ports: [{port: 80}]}}",
	"ConfigMap": "{apiVersion: v1, kind: ConfigMap, metadata: {name: web}}",
	"Secret":    "{apiVersion: v1, kind: Secret, metadata: {name: web}}",
	"PodDisruptionBudget": "{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: web}, " +
		"spec: {minAvailable: 1, selector: {matchLabels: {app: web}}}}",
	"NetworkPolicy": "{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: web}, spec: {podSelector: {}, policyTypes: [Ingress, Egress]}}",
	"ResourceQuota": "{apiVersion: v1, kind: ResourceQuota, metadata: {name: web}, spec: {hard: {pods: 1}}}",
	"PersistentVolumeClaim": "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: web}, " +
		"spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}",
	"Endpoints": "{apiVersion: v1, kind: Endpoints, metadata: {name: web}, subsets: [{addresses: [{ip: 192.0.2.1}], ports: [{port: 80}]}]}",
	"EndpointSlice": "{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: web, labels: {kubernetes.io/service-name: web}}, " +
		"addressType: IPv4, endpoints: [{addresses: [192.0.2.1]}], ports: [{port: 80}]}",
}

// insteadOfOther: a field that takes the place of another one.
var insteadOfOther = map[string]string{
	"Probe.httpGet":   "exec",
	"Probe.tcpSocket": "exec",
	"Probe.grpc":      "exec",

	"EnvFromSource.secretRef":                "configMapRef",
	"DownwardAPIVolumeFile.resourceFieldRef": "fieldRef",
	"PodDisruptionBudgetSpec.maxUnavailable": "minAvailable",
}

// frames are what a mapping needs besides the field: see lookUp.
var frames = map[string]string{
	"spec.template.spec.initContainers[]": `{name: first, image: "web:1", restartPolicy: Always}`,

	"NodeSelectorTerm.matchFields": "{key: metadata.name, operator: In, values: [a]}",
	"DownwardAPIVolumeFile":        "{path: a, fieldRef: {fieldPath: metadata.name}}",

	"Container":                         `{name: other, image: "web:1"}`,
	"EphemeralContainer":                "{name: other}",
	"Volume":                            "{name: other, emptyDir: {}}",
	"HostPathVolumeSource":              "{path: /srv}",
	"SecretVolumeSource":                "{secretName: files}",
	"ConfigMapVolumeSource":             "{name: files}",
	"PersistentVolumeClaimVolumeSource": "{claimName: files}",
	"SecretProjection":                  "{name: files}",
	"ConfigMapProjection":               "{name: files}",
	"KeyToPath":                         "{key: a, path: a}",
	"CSIVolumeSource":                   "{driver: example.com}",
	"ContainerPort":                     "{containerPort: 81}",
	"EnvFromSource":                     "{configMapRef: {name: files}}",
	"ConfigMapEnvSource":                "{name: files}",
	"SecretEnvSource":                   "{name: files}",
	"EnvVar":                            "{name: A}",
	"ObjectFieldSelector":               "{fieldPath: metadata.name}",
	"ResourceFieldSelector":             "{resource: limits.cpu, containerName: web}",
	"ConfigMapKeySelector":              "{name: files, key: a}",
	"SecretKeySelector":                 "{name: files, key: a}",
	"VolumeMount":                       "{name: files, mountPath: /files}",
	"Probe":                             "{exec: {command: [a]}}",
	"HTTPGetAction":                     "{port: 80}",
	"HTTPHeader":                        "{name: X-A, value: a}",
	"TCPSocketAction":                   "{port: 80}",
	"GRPCAction":                        "{port: 80}",
	"Sysctl":                            `{name: net.core.somaxconn, value: "512"}`,
	"LabelSelector":                     "{matchLabels: {app: web}}",
	"NodeSelector":                      "{nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}]}",
	"NodeSelectorTerm":                  "{matchExpressions: [{key: a, operator: Exists}]}",
	"PreferredSchedulingTerm":           "{weight: 1, preference: {matchExpressions: [{key: a, operator: Exists}]}}",
	"NodeSelectorRequirement":           "{key: a, operator: Exists}",
	"PodAffinityTerm":                   "{topologyKey: zone, labelSelector: {matchLabels: {app: web}}}",
	"WeightedPodAffinityTerm":           "{weight: 1, podAffinityTerm: {topologyKey: zone, labelSelector: {matchLabels: {app: web}}}}",
	"Toleration":                        "{key: a, operator: Exists}",
	"HostAlias":                         "{ip: 192.0.2.1}",
	"PodDNSConfigOption":                "{name: ndots}",
	"EndpointAddress":                   "{ip: 192.0.2.2}",

	"TopologySpreadConstraint":  "{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: web}}}",
	"LabelSelectorRequirement":  "{key: app, operator: Exists}",
	"PersistentVolumeClaimSpec": "{accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}",
}

// plainValues are values by type, for fields that are not in tries.
var plainValues = map[string]string{
	"string":              "a",
	"bool":                "true",
	"int32":               "5",
	"int64":               "5",
	"[]string":            "[a]",
	"[]int64":             "[5]",
	"IntOrString":         "80",
	"Quantity":            "1Mi",
	"Time":                `"2026-01-01T00:00:00Z"`,
	"FieldsV1":            `{"f:spec": {}}`,
	"bytes":               "aGk=",
	"map[string]string":   "{a: b}",
	"map[string]bytes":    "{b: aGk=}",
	"map[string]Quantity": "{cpu: 2}",

	"StatefulSetStatus":           "{replicas: 1}",
	"ServiceStatus":               "{loadBalancer: {}}",
	"PodDisruptionBudgetStatus":   "{currentHealthy: 1}",
	"PersistentVolumeClaimStatus": "{phase: Bound}",
	"ResourceQuotaStatus":         "{hard: {pods: 1}}",
}

// tries are the values of fields that not every value fits, the usual one first: see lookUp, and
// builder.with for " with ".
var tries = map[string][]string{
	"StatefulSet.kind":                 {"StatefulSet"},
	"StatefulSet.apiVersion":           {"apps/v1"},
	"Service.kind":                     {"Service"},
	"Service.apiVersion":               {"v1"},
	"ConfigMap.kind":                   {"ConfigMap"},
	"ConfigMap.apiVersion":             {"v1"},
	"Secret.kind":                      {"Secret"},
	"Secret.apiVersion":                {"v1"},
	"PodDisruptionBudget.kind":         {"PodDisruptionBudget"},
	"PodDisruptionBudget.apiVersion":   {"policy/v1"},
	"ResourceQuota.kind":               {"ResourceQuota"},
	"ResourceQuota.apiVersion":         {"v1"},
	"NetworkPolicy.kind":               {"NetworkPolicy"},
	"NetworkPolicy.apiVersion":         {"networking.k8s.io/v1"},
	"PersistentVolumeClaim.kind":       {"PersistentVolumeClaim"},
	"PersistentVolumeClaim.apiVersion": {"v1"},
	"Endpoints.kind":                   {"Endpoints"},
	"Endpoints.apiVersion":             {"v1"},
	"EndpointSlice.kind":               {"EndpointSlice"},
	"EndpointSlice.apiVersion":         {"discovery.k8s.io/v1"},

	"spec.volumeClaimTemplates[].metadata.name": {"data"},

	"StatefulSetSpec.podManagementPolicy":                         {"Parallel", "OrderedReady"},
	"StatefulSetUpdateStrategy.type":                              {"RollingUpdate", "OnDelete"},
	"RollingUpdateStatefulSetStrategy.maxUnavailable":             {"2", "50%"},
	"StatefulSetPersistentVolumeClaimRetentionPolicy.whenDeleted": {"Delete", "Retain"},
	"StatefulSetPersistentVolumeClaimRetentionPolicy.whenScaled":  {"Delete", "Retain"},
	"PersistentVolumeClaimSpec.accessModes":                       {"[ReadWriteOnce]", "[ReadWriteOncePod]", "[ReadWriteMany]", "[ReadOnlyMany]"},
	"PersistentVolumeClaimSpec.volumeMode":                        {"Filesystem", "Block"},
	"VolumeResourceRequirements.requests":                         {"{storage: 2Gi}"},
	"VolumeResourceRequirements.limits":                           {"{storage: 2Gi}"},

	"LabelSelector.matchLabels":         {"{app: web}"},
	"namespaceSelector.matchLabels":     {"{kubernetes.io/metadata.name: prod}", "{app: web}"},
	"LabelSelectorRequirement.key":      {"app"},
	"LabelSelectorRequirement.operator": {"Exists", "In with values: [web]"},
	"LabelSelectorRequirement.values":   {"[web] with operator: In"},
	"NodeSelectorRequirement.operator":  {"Exists", `Gt with values: ["5"]`},
	"NodeSelectorRequirement.values":    {"[a] with operator: In"},
	"matchFields[].key":                 {"metadata.name"},
	"matchFields[].operator":            {"In"},

	"PodSpec.restartPolicy":                {"Always", "OnFailure", "Never"},
	"PodSpec.dnsPolicy":                    {"ClusterFirst", "ClusterFirstWithHostNet", "Default", "None with dnsConfig: {nameservers: [192.0.2.53]}"},
	"PodSpec.preemptionPolicy":             {"Never", "PreemptLowerPriority"},
	"PodSpec.hostUsers":                    {"true", "false"},
	"PodOS.name":                           {"linux", "windows"},
	"PodSpec.automountServiceAccountToken": {"false", "true"},
	"PodSpec.enableServiceLinks":           {"false", "true"},
	"PodDNSConfig.nameservers":             {"[192.0.2.53]"},
	"PodDNSConfig.searches":                {"[example.com]"},
	"PodDNSConfigOption.value":             {`"2"`},
	"HostAlias.ip":                         {"192.0.2.1"},
	"HostAlias.hostnames":                  {"[example.com]"},
	"Toleration.operator":                  {"Exists", "Equal"},
	"Toleration.value":                     {"b with operator: Equal"},
	"Toleration.effect":                    {"NoSchedule", "PreferNoSchedule", "NoExecute"},
	"Toleration.tolerationSeconds":         {"5 with effect: NoExecute"},

	"TopologySpreadConstraint.whenUnsatisfiable":  {"DoNotSchedule", "ScheduleAnyway"},
	"TopologySpreadConstraint.minDomains":         {"2", "0"},
	"TopologySpreadConstraint.nodeAffinityPolicy": {"Honor", "Ignore"},
	"TopologySpreadConstraint.nodeTaintsPolicy":   {"Ignore", "Honor"},

	"Container.workingDir":               {"/srv"},
	"Container.imagePullPolicy":          {"Always", "IfNotPresent", "Never"},
	"Container.restartPolicy":            {"Always"},
	"Container.terminationMessagePath":   {"/dev/termination-log", "/tmp/end"},
	"Container.terminationMessagePolicy": {"File", "FallbackToLogsOnError"},
	"ContainerPort.protocol":             {"TCP", "UDP", "SCTP"},
	"ContainerPort.hostIP":               {"192.0.2.1 with hostPort: 81"},
	"ObjectFieldSelector.apiVersion":     {"v1"},
	"ObjectFieldSelector.fieldPath":      {"metadata.name"},
	"ResourceFieldSelector.resource":     {"limits.memory"},
	"ResourceFieldSelector.divisor":      {"1m"},

	"ResourceFieldSelector.containerName": {"web"},
	"ResourceRequirements.limits":         {"{cpu: 2, memory: 64Mi}", "{ephemeral-storage: 1Gi}", "{cpu: 2, hugepages-2Mi: 4Mi}", "{example.com/gpu: 1}"},
	"ResourceRequirements.requests":       {"{cpu: 2, memory: 64Mi}", "{ephemeral-storage: 1Gi}"},
	"VolumeMount.name":                    {"files"},
	"VolumeMount.mountPath":               {"/srv"},
	"VolumeMount.mountPropagation":        {"None", "HostToContainer", "Bidirectional"},
	"VolumeMount.recursiveReadOnly":       {"Disabled", "IfPossible", "Enabled"},
	"EmptyDirVolumeSource.medium":         {"Memory", "HugePages", "HugePages-2Mi"},
	"EmptyDirVolumeSource.sizeLimit":      {"1Mi with medium: Memory", "1Mi"},

	"Probe.successThreshold": {"1"},
	"HTTPGetAction.path":     {"/a"},
	"HTTPGetAction.scheme":   {"HTTPS", "HTTP"},
	"HTTPHeader.name":        {"X-B"},
	"Lifecycle.stopSignal":   {"SIGUSR1"},

	"Capabilities.add":                            {"[NET_BIND_SERVICE]", "[NET_ADMIN]"},
	"Capabilities.drop":                           {"[ALL]"},
	"SecurityContext.allowPrivilegeEscalation":    {"false", "true"},
	"SecurityContext.privileged":                  {"false", "true"},
	"SecurityContext.procMount":                   {"Default", "Unmasked"},
	"SeccompProfile.type":                         {"RuntimeDefault", "Unconfined", "Localhost with localhostProfile: a.json"},
	"SeccompProfile.localhostProfile":             {"a.json with type: Localhost"},
	"AppArmorProfile.type":                        {"Unconfined", "RuntimeDefault", "Localhost with localhostProfile: a"},
	"AppArmorProfile.localhostProfile":            {"a with type: Localhost"},
	"PodSecurityContext.supplementalGroupsPolicy": {"Merge", "Strict"},
	"PodSecurityContext.fsGroupChangePolicy":      {"OnRootMismatch", "Always"},
	"PodSecurityContext.seLinuxChangePolicy":      {"Recursive", "MountOption"},
	"HostPathVolumeSource.path":                   {"/srv"},
	"HostPathVolumeSource.type":                   {"Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket", "CharDevice", "BlockDevice"},
	"Sysctl.name":                                 {"net.core.somaxconn", "kernel.shmmax", "vm.max_map_count"},
	"Sysctl.value":                                {`"512"`},

	"PodDisruptionBudgetSpec.minAvailable":               {"1", "50%"},
	"PodDisruptionBudgetSpec.maxUnavailable":             {"1", "50%"},
	"PodDisruptionBudgetSpec.unhealthyPodEvictionPolicy": {"AlwaysAllow"},

	"ResourceQuotaSpec.hard":                      {"{pods: 5, requests.cpu: 2500m, requests.memory: 8Gi}", "{requests.ephemeral-storage: 1Gi}"},
	"ScopedResourceSelectorRequirement.operator":  {"Exists"},
	"ScopedResourceSelectorRequirement.scopeName": {"PriorityClass"},
	"ResourceQuotaSpec.scopes":                    {"[BestEffort]"},

	"NetworkPolicySpec.policyTypes": {"[Ingress, Egress]"},
	"NetworkPolicyPort.protocol":    {"TCP", "UDP", "SCTP"},
	"NetworkPolicyPort.port":        {"80", "http"},
	"NetworkPolicyPort.endPort":     {"90 with port: 80"},
	"IPBlock.cidr":                  {"10.0.0.0/8"},
	"IPBlock.except":                {"[10.1.0.0/16] with cidr: 10.0.0.0/8"},

	"ServiceSpec.clusterIP":                {"None with type: ClusterIP", "10.89.0.7"},
	"ServiceSpec.clusterIPs":               {"[None]"},
	"ServiceSpec.type":                     {"ClusterIP", "NodePort", "LoadBalancer", "ExternalName with externalName: example.com"},
	"ServiceSpec.externalIPs":              {"[192.0.2.1]"},
	"ServiceSpec.sessionAffinity":          {"None", "ClientIP"},
	"ServiceSpec.loadBalancerIP":           {"192.0.2.1 with type: LoadBalancer", "192.0.2.1"},
	"ServiceSpec.loadBalancerSourceRanges": {"[192.0.2.0/24] with type: LoadBalancer"},
	"ServiceSpec.loadBalancerClass":        {"example.com/a with type: LoadBalancer"},
	"ServiceSpec.externalName":             {"example.com with type: ExternalName", "example.com"},
	"ServiceSpec.externalTrafficPolicy":    {"Cluster with type: LoadBalancer", "Local with type: LoadBalancer"},
	"ServiceSpec.healthCheckNodePort":      {"30080 with {type: LoadBalancer, externalTrafficPolicy: Local}"},
	"ServiceSpec.internalTrafficPolicy":    {"Cluster", "Local"},
	"ServiceSpec.trafficDistribution":      {"PreferClose"},
	"ServiceSpec.ipFamilies":               {"[IPv4]", "[IPv6]"},
	"ServiceSpec.ipFamilyPolicy":           {"SingleStack", "PreferDualStack", "RequireDualStack"},

	"ServiceSpec.allocateLoadBalancerNodePorts": {"true with type: LoadBalancer", "false with type: LoadBalancer"},

	"EndpointAddress.ip":             {"192.0.2.1", `"2001:db8::1"`},
	"EndpointSlice.addressType":      {"IPv4", "IPv6", "FQDN"},
	"Endpoint.addresses":             {"[192.0.2.1, 192.0.2.2]"},
	"EndpointConditions.ready":       {"true", "false"},
	"EndpointConditions.serving":     {"true with {ready: false, terminating: true}"},
	"EndpointConditions.terminating": {"true with {ready: false, serving: true}"},
	"EndpointPort.protocol":          {"TCP", "UDP", "SCTP"},
	"EndpointPort.appProtocol":       {"http"},

	"ServicePort.protocol":    {"TCP", "UDP", "SCTP"},
	"ServicePort.targetPort":  {"80", "8080", "http"},
	"ServicePort.nodePort":    {"30080"},
	"ServicePort.appProtocol": {"http"},
	"ConfigMap.binaryData":    {"{b: /w==}"},
	"Secret.type":             {"kubernetes.io/tls"},
}
