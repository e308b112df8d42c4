package manifest

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/stead-project/stead/spec"
)

func parseTemplate(t *testing.T, text string) spec.Template {
	t.Helper()
	const head = "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: db}\nspec:\n  selector: {matchLabels: {app: db}}\n  template:\n"
	o, problems, _ := Parse([]Source{{Name: "t", Content: []byte(head + text)}}, Options{})
	if len(problems) > 0 {
		t.Fatal(problems[0])
	}
	return o.Sets[0].Spec.Template
}

const plainTemplate = `
    metadata: {labels: {app: db, x: "y"}, annotations: {a: b, c: d}}
    spec:
      containers:
        - {name: a, image: "a:1", resources: {limits: {memory: 1Gi}}, ports: [{containerPort: 80}], readinessProbe: {httpGet: {port: 80}}}
      volumes: [{name: v, secret: {secretName: s}}]
`

func TestTemplatesThatMeanTheSameHashAlike(t *testing.T) {
	want := spec.HashTemplate(parseTemplate(t, plainTemplate))
	for name, text := range map[string]string{
		"defaults written out, other order": `
    spec:
      dnsPolicy: ClusterFirst
      restartPolicy: Always
      terminationGracePeriodSeconds: 30
      securityContext: {}
      dnsConfig: {}
      hostAliases: []
      volumes: [{secret: {secretName: s, defaultMode: 0644, items: []}, name: v}]
      containers:
        - image: a:1
          name: a
          imagePullPolicy: IfNotPresent
          env: []
          command: null
          securityContext: {allowPrivilegeEscalation: true, privileged: false}
          resources: {limits: {memory: 1024Mi}, requests: {memory: "1073741824"}}
          ports: [{containerPort: 80, protocol: TCP}]
          readinessProbe: {httpGet: {port: 80, path: /, scheme: HTTP}, periodSeconds: 10, timeoutSeconds: 1, successThreshold: 1, failureThreshold: 3}
    metadata: {name: x, annotations: {c: d, a: b}, labels: {x: "y", app: db}}
`, "ignored fields": plainTemplate + "      serviceAccountName: db\n      enableServiceLinks: false\n",
	} {
		if got := spec.HashTemplate(parseTemplate(t, text)); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

func TestHashingChangesNothingAndSurvivesTheStore(t *testing.T) {
	in := mustParse(t, read(t, "whole.yaml")).Sets[0].Spec.Template
	before := spec.Clone(in)
	h := spec.HashTemplate(in)
	if !reflect.DeepEqual(in, before) {
		t.Error("the template was changed")
	}
	b, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	var back spec.Template
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	if got := spec.HashTemplate(back); got != h {
		t.Errorf("got %s, want %s", got, h)
	}
}

// What later fields say by default is what their absence says.
func TestDefaultsOfFilesAndNamesHashAsAbsent(t *testing.T) {
	const head = "\n    metadata: {labels: {app: db}}\n    spec:\n"
	short := parseTemplate(t, head+`
      containers:
        - name: a
          image: "a:1"
          env:
            - {name: CPU, valueFrom: {resourceFieldRef: {resource: limits.cpu}}}
          volumeMounts: [{name: v, mountPath: /v}]
      volumes:
        - {name: v, downwardAPI: {items: [{path: name, fieldRef: {fieldPath: metadata.name}}]}}
        - {name: w, projected: {sources: [{downwardAPI: {items: [{path: m, resourceFieldRef: {containerName: a, resource: limits.memory}}]}}, {secret: {name: s}}]}}
`)
	long := parseTemplate(t, head+`
      dnsPolicy: ClusterFirst
      dnsConfig: {nameservers: [], searches: [], options: []}
      hostAliases: []
      containers:
        - name: a
          image: "a:1"
          env:
            - {name: CPU, valueFrom: {resourceFieldRef: {resource: limits.cpu, containerName: "", divisor: 1}}}
          volumeMounts: [{name: v, mountPath: /v, subPathExpr: ""}]
      volumes:
        - {name: v, downwardAPI: {defaultMode: 0644, items: [{path: name, fieldRef: {apiVersion: v1, fieldPath: metadata.name}}]}}
        - name: w
          projected:
            defaultMode: 0644
            sources:
              - downwardAPI: {items: [{path: m, resourceFieldRef: {containerName: a, resource: limits.memory, divisor: "0"}}]}
              - secret: {name: s, items: [], optional: false}
`)
	if a, b := spec.HashTemplate(short), spec.HashTemplate(long); a != b {
		t.Errorf("got %s and %s", a, b)
	}
}
