package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// chartSet has what charts bring along, and says of what Stead does anyway.
const chartSet = `
kind: NetworkPolicy
apiVersion: networking.k8s.io/v1
metadata: {name: life}
spec: {podSelector: {}, policyTypes: [Ingress]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: life}
rules: []
---
apiVersion: v1
kind: Pod
metadata: {name: life-test, annotations: {"helm.sh/hook": test}}
spec: {restartPolicy: Never, containers: [{name: test, image: "stead.local/tool:1"}]}
---
apiVersion: policy/v1beta1
kind: PodDisruptionBudget
metadata: {name: life}
spec: {maxUnavailable: 1, selector: {matchLabels: {app: life}}}
---
apiVersion: v1
kind: Service
metadata: {name: life}
spec:
  type: ClusterIP
  clusterIP: None
  selector: {app: life}
  ports: [{name: probe, port: 80, targetPort: probe}]
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: life}
spec:
  serviceName: life
  replicas: 1
  selector: {matchLabels: {app: life}}
  template:
    metadata: {labels: {app: life}}
    spec:
      os: {name: linux}
      automountServiceAccountToken: false
      terminationGracePeriodSeconds: 5
      affinity: {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, podAffinityTerm: {topologyKey: zone}}]}}
      securityContext: {supplementalGroupsPolicy: Merge, seccompProfile: {type: RuntimeDefault}, seLinuxOptions: {}}
      containers:
      - name: life
        image: stead.local/tool:1
        imagePullPolicy: Never
        command: [/box, life]
        ports: [{name: probe, containerPort: 8080}]
        readinessProbe: {tcpSocket: {port: probe}, periodSeconds: 1}
        resources: {limits: {ephemeral-storage: 2Gi}, requests: {ephemeral-storage: 50Mi}}
        securityContext: {procMount: Default, seccompProfile: {type: RuntimeDefault}, appArmorProfile: {type: Unconfined}}
        volumeMounts: [{name: data, mountPath: /data, mountPropagation: None}, {name: tmp, mountPath: /scratch}]
      volumes:
      - {name: data, persistentVolumeClaim: {claimName: data}}
      - {name: tmp}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}
`

// TestAChartsManifestRunsAsItIs: what was accepted is so in the container, and in DNS.
func TestAChartsManifestRunsAsItIs(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.startServer()
	l.startAgent()
	l.stead("image", "load", l.toolArchive())
	said := l.apply("life", chartSet, "--wait", "--timeout", patience)
	for _, want := range []string{"networkpolicy", "no Kubernetes API", "tests: Pod life-test", "is read as policy/v1"} {
		if !strings.Contains(said, want) {
			t.Errorf("no %q in\n%s", want, said)
		}
	}
	if status := l.stead("exec", "life-0", "--", "/box", "command", "cat", "/proc/1/status"); !strings.Contains(status, "\nSeccomp:\t2\n") {
		t.Errorf("no seccomp profile:\n%s", status)
	}
	mounts := l.stead("exec", "life-0", "--", "/box", "command", "cat", "/proc/1/mountinfo")
	for at, from := range map[string]string{"/data": "/default/life/data-0/data", "/scratch": "/scratch/"} {
		if line := lineWith(mounts, " "+at+" "); !strings.Contains(line, from) {
			t.Errorf("%s is %q, want a mount of %s", at, line, from)
		}
	}
	l.eventually(time.Minute, "SRV shows the members' port", func() error {
		got, err := l.inside(time.Minute, "dig", "@"+gateway, "+short", "+time=5", "+tries=1", "SRV", "_probe._tcp.life.default.svc.cluster.local")
		if err != nil || strings.TrimSpace(got) != "0 100 8080 life-0.life.default.svc.cluster.local." {
			return fmt.Errorf("%q, %v", got, err)
		}
		return nil
	})
}
