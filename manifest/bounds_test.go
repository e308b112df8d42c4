package manifest

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestHostileInputIsRefusedQuickly gives input that must neither hang nor fill memory.
func TestHostileInputIsRefusedQuickly(t *testing.T) {
	config := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
	deepFlow := config + "data: {a: " + strings.Repeat("[", 200) + strings.Repeat("]", 200) + "}\n"
	tests := []struct {
		name, content, want string
	}{
		{"a huge file", strings.Repeat("# x\n", 3<<20), "f: the file has 12582912 bytes, the maximum is 8388608; split it"},
		{"too many documents", strings.Repeat("---\n{kind: Namespace, apiVersion: v1}\n", 10_001), "f:20001:1: more than 10000 documents; split the file"},
		{"too many values", "[" + strings.Repeat("a,", 600_000) + "]", "f:1:1: the document has more than 500000 values; split it"},
		{"deep brackets", strings.Repeat("[", 100_000), "f:1:1: invalid YAML: exceeded max depth of 10000"},
		{"deep dashes", strings.Repeat("- ", 100_000), "f:1:1: invalid YAML: exceeded max depth of 10000"},
		{"deep values", deepFlow, "f:4:11: data[a]: is a list, not text"},
		{"latin 1", config + "data: {a: caf\xe9}\n", "f:4:14: the file is not UTF-8; save it as UTF-8; put binary content as base64 into binaryData"},
		{"UTF-16", "\xff\xfea\x00", "f:1:1: the file is not UTF-8; save it as UTF-8; put binary content as base64 into binaryData"},
		{"a NUL byte", config + "data: {a: é\x00}\n", "f:4:12: the file contains a NUL byte; is it a text file?"},
		{"an escape character", config + "data: {a: \x1b}\n", "f:4:11: the control character U+001B is not allowed; write it as an escape in double quotes"},
		{"a merge of itself", config + "data: &d\n  <<: [*d, *d]\n  a: b\n", "nested deeper than 100"},
		{"aliases of aliases", config + laughs("data"), "is a list, not text"},
		{"a long text, often", longAlias(), "aliases expand to more than 100000 values; write them out"},
		{"merges that multiply", merges(), "aliases expand to more than 100000 values; write them out"},
		{"a list that holds itself", "apiVersion: v1\nkind: List\nitems: &i [*i]\n", "items[0]: is an alias; write the object out"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			begin := time.Now()
			_, problems, _ := Parse([]Source{{Name: "f", Content: []byte(tt.content)}}, Options{})
			took := time.Since(begin)
			runtime.ReadMemStats(&after)
			if len(problems) == 0 || len(problems) > maxProblems+1 {
				t.Fatalf("%d problems", len(problems))
			}
			found := false
			for _, p := range problems {
				found = found || strings.Contains(p.String(), tt.want)
			}
			if !found {
				t.Errorf("got %s, want %s", problems[0], tt.want)
			}
			if took > 20*time.Second {
				t.Errorf("took %s", took)
			}
			if mib := (after.TotalAlloc - before.TotalAlloc) >> 20; mib > 512 {
				t.Errorf("allocated %d MiB", mib)
			}
		})
	}
}

// laughs is the billion laughs.
func laughs(field string) string {
	var b strings.Builder
	b.WriteString(field + ":\n  a0: &a0 [x,x]\n")
	for i := 1; i < 40; i++ {
		fmt.Fprintf(&b, "  a%d: &a%d [*a%d,*a%d]\n", i, i, i-1, i-1)
	}
	return b.String()
}

// longAlias wants a megabyte decoded a thousand times.
func longAlias() string {
	var b strings.Builder
	b.WriteString("apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata:\n  a: &a " + strings.Repeat("YWFh", 1<<18) + "\n")
	for i := range 1000 {
		fmt.Fprintf(&b, "  a%d: *a\n", i)
	}
	return b.String()
}

// merges doubles the keys to be read with every line.
func merges() string {
	var b strings.Builder
	b.WriteString("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  annotations:\n    a0: &a0 {x: y}\n")
	for i := 1; i < 40; i++ {
		fmt.Fprintf(&b, "    a%d: &a%d {<<: [*a%d, *a%d]}\n", i, i, i-1, i-1)
	}
	b.WriteString("data:\n  <<: *a39\n")
	return b.String()
}

func TestInputWithoutAnyObjectIsAProblem(t *testing.T) {
	for _, content := range []string{
		"", "\n\n", "# only a comment\n", "---\n", "---\n---\n# x\n---\n...\n", "\ufeff# bom\r\n", "null\n", "---\r\n\r\n",
		"apiVersion: v1\nkind: List\nitems: []\n", "apiVersion: v1\nkind: List\n",
	} {
		empty := Source{Name: "f", Content: []byte(content)}
		_, problems, _ := Parse([]Source{empty, {Name: "g"}}, Options{})
		want := "f, g: contains no objects; write at least one; empty standard input often means that the command before the pipe failed"
		if len(problems) != 1 || problems[0].String() != want {
			t.Errorf("%q: got %v", content, problems)
		}
		whole := Source{Name: "c", Content: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")}
		if o, problems, warnings := Parse([]Source{empty, whole}, Options{}); len(problems)+len(warnings) != 0 || len(o.ConfigMaps) != 1 {
			t.Errorf("%q beside an object: got %v %v", content, problems, warnings)
		}
	}
	skipped := "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\n"
	if _, problems, _ := Parse([]Source{{Name: "f", Content: []byte(skipped)}}, Options{SkipUnsupported: true}); len(problems) != 0 {
		t.Errorf("of what --skip-unsupported leaves out: %v", problems)
	}
}

func TestEveryTruncationIsReadWithoutPanic(t *testing.T) {
	whole := read(t, "whole.yaml").Content
	refused := 0
	for i := 0; i < len(whole); i += 7 {
		_, problems, _ := Parse([]Source{{Name: "f", Content: whole[:i]}}, Options{})
		if len(problems) > 0 {
			refused++
		}
	}
	if refused < len(whole)/7/2 {
		t.Errorf("only %d of %d truncations were refused", refused, len(whole)/7)
	}
}

func TestMergeKeysAndAliases(t *testing.T) {
	const content = `
apiVersion: v1
kind: ConfigMap
metadata: {name: a, labels: &l {x: "1", w: "2"}, annotations: {<<: *l, w: "3", z: "4"}}
data: {<<: [{a: first, b: b}, {a: second, c: c}]}
`
	o := mustParse(t, Source{Name: "f", Content: []byte(content)})
	m := o.ConfigMaps[0]
	if got := fmt.Sprint(m.Metadata.Annotations, m.Data); got != "map[w:3 x:1 z:4] map[a:first b:b c:c]" {
		t.Errorf("got %s", got)
	}
}

func TestCarriageReturnsAndPositions(t *testing.T) {
	content := bytes.ReplaceAll([]byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\nkind: Nope\napiVersion: v1\n"), []byte("\n"), []byte("\r\n"))
	_, problems, _ := Parse([]Source{{Name: "f", Content: content}}, Options{})
	if len(problems) != 1 || problems[0].Line != 5 || problems[0].Column != 7 {
		t.Errorf("got %v", problems)
	}
}

func TestOptions(t *testing.T) {
	const content = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
	o, problems, warnings := Parse([]Source{{Name: "f", Content: []byte(content)}}, Options{Namespace: "prod", SkipUnsupported: true})
	if len(problems) != 0 || len(warnings) != 1 || len(o.ConfigMaps) != 1 || o.ConfigMaps[0].Metadata.Namespace != "prod" {
		t.Errorf("got %v %v %v", o.ConfigMaps, problems, warnings)
	}
	if want := `skipped (--skip-unsupported): Job j`; warnings[0].String() != want {
		t.Errorf("got %s, want %s", warnings[0], want)
	}
}

func TestLongSetNames(t *testing.T) {
	for length, fits := range map[int]bool{52: true, 53: false} {
		content := "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: " + strings.Repeat("a", length) +
			"}\nspec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: b}]}}}\n"
		_, problems, _ := Parse([]Source{{Name: "f", Content: []byte(content)}}, Options{})
		if (len(problems) == 0) != fits {
			t.Errorf("%d characters: %v", length, problems)
		}
	}
}

// TestAnnotationsHaveKubernetesSize: 256 KiB of keys and values an object, of each kind. A key's prefix may
// have capitals. kubectl's own copy, which is left out, does not count.
func TestAnnotationsHaveKubernetesSize(t *testing.T) {
	for kind, text := range plainObjects {
		for size, fits := range map[int]bool{256 << 10: true, 256<<10 + 1: false} {
			key := "Example.com/a"
			marks := "annotations: {" + key + ": " + strings.Repeat("x", size-len(key)) + ", " + lastApplied + ": " + strings.Repeat("y", 1<<20) + "}"
			whole := strings.Replace(text, "metadata: {", "metadata: {"+marks+", ", 1)
			if whole == text {
				t.Fatalf("%s: the manifest has no metadata to write into", kind)
			}
			_, problems, _ := Parse([]Source{{Name: "f", Content: []byte(whole)}}, Options{})
			if (len(problems) == 0) != fits {
				t.Errorf("%s with %d bytes: %v", kind, size, problems)
			}
		}
	}
}
