package spec

import (
	"reflect"
	"strings"
	"testing"

	"github.com/stead-project/stead/spec/changes"
	"github.com/stead-project/stead/spec/scalar"
)

// several has containers, a sidecar and an init container.
func several() Template {
	t := twoContainers()
	always := RestartAlways
	t.Spec.InitContainers = append(t.Spec.InitContainers, Container{Name: "sidecar", Image: "car:1", RestartPolicy: &always})
	return t
}

func amounts(cpu, memory int64) map[string]scalar.Quantity {
	return map[string]scalar.Quantity{"cpu": {Milli: cpu}, "memory": mega(memory)}
}

func TestWhatChangesInPlace(t *testing.T) {
	resources, image := changes.InPlace{Resources: true}, changes.InPlace{Image: true}
	for name, tc := range map[string]struct {
		from   func(*Template)
		change func(*Template)
		want   changes.InPlace
		same   bool   // nothing else differs
		why    string // part of it
	}{
		"nothing":                           {nil, func(*Template) {}, changes.InPlace{}, true, ""},
		"the image of a container":          {nil, func(t *Template) { t.Spec.Containers[1].Image = "s:2" }, image, true, ""},
		"the image of a sidecar":            {nil, func(t *Template) { t.Spec.InitContainers[1].Image = "car:2" }, image, true, ""},
		"the image of an init container":    {nil, func(t *Template) { t.Spec.InitContainers[0].Image = "i:2" }, changes.InPlace{}, false, ""},
		"an image that is always pulled":    {nil, func(t *Template) { t.Spec.Containers[1].Image, t.Spec.Containers[1].ImagePullPolicy = "s", PullAlways }, image, true, ""},
		"an image and its policy":           {nil, func(t *Template) { t.Spec.Containers[1].Image, t.Spec.Containers[1].ImagePullPolicy = "s:2", PullNever }, image, false, ""},
		"a limit":                           {nil, func(t *Template) { t.Spec.Containers[0].Resources.Limits = amounts(1000, 65) }, resources, true, ""},
		"a limit more":                      {nil, func(t *Template) { t.Spec.Containers[1].Resources.Limits = amounts(1000, 65) }, resources, true, ""},
		"a limit less":                      {nil, func(t *Template) { t.Spec.Containers[0].Resources.Limits = nil }, resources, true, ""},
		"a request":                         {nil, func(t *Template) { t.Spec.Containers[0].Resources.Requests = amounts(10, 32) }, resources, true, ""},
		"a limit that is written otherwise": {nil, func(t *Template) { t.Spec.Containers[0].Resources.Limits["cpu"] = scalar.Quantity{Milli: 1000} }, changes.InPlace{}, true, ""},
		"huge pages":                        {nil, func(t *Template) { t.Spec.Containers[0].Resources.Limits["hugepages-2Mi"] = mega(2) }, changes.InPlace{}, false, ""},
		"image and resources": {nil, func(t *Template) {
			t.Spec.Containers[0].Image, t.Spec.Containers[0].Resources.Limits = "db:2", amounts(1, 64)
		}, changes.InPlace{Resources: true, Image: true}, true, ""},
		"an image and a variable":                  {nil, func(t *Template) { t.Spec.Containers[0].Image, t.Spec.Containers[0].Env = "db:2", nil }, image, false, ""},
		"a container more":                         {nil, func(t *Template) { t.Spec.Containers = append(t.Spec.Containers, Container{Name: "more", Image: "m"}) }, changes.InPlace{}, false, ""},
		"a container less":                         {nil, func(t *Template) { t.Spec.Containers = t.Spec.Containers[:1] }, changes.InPlace{}, false, ""},
		"containers that change their places":      {nil, func(t *Template) { c := t.Spec.Containers; c[0], c[1] = c[1], c[0] }, changes.InPlace{}, false, ""},
		"a sidecar that becomes an init container": {nil, func(t *Template) { t.Spec.InitContainers[1].RestartPolicy, t.Spec.InitContainers[1].Image = nil, "x" }, changes.InPlace{}, false, ""},
		"a variable that shows a limit": {
			func(t *Template) {
				t.Spec.Containers[1].Env = []EnvVar{{Name: "MEM", ValueFrom: &EnvVarSource{ResourceFieldRef: &ResourceFieldRef{ContainerName: "db", Resource: "limits.memory"}}}}
			}, func(t *Template) { t.Spec.Containers[0].Resources.Limits = amounts(1000, 65) }, resources, true, "variable MEM shows",
		},
		"a variable that shows a limit, and another image": {
			func(t *Template) {
				t.Spec.Containers[1].Env = []EnvVar{{Name: "MEM", ValueFrom: &EnvVarSource{ResourceFieldRef: &ResourceFieldRef{Resource: "limits.memory"}}}}
			}, func(t *Template) { t.Spec.Containers[0].Image = "db:2" }, image, true, "",
		},
		"a variable that shows the disk": {
			func(t *Template) {
				t.Spec.Containers[1].Env = []EnvVar{{Name: "DISK", ValueFrom: &EnvVarSource{ResourceFieldRef: &ResourceFieldRef{Resource: "limits.ephemeral-storage"}}}}
			}, func(t *Template) { t.Spec.Containers[0].Resources.Limits = amounts(1000, 65) }, resources, true, "",
		},
		"a file that shows a request": {
			func(t *Template) {
				t.Spec.Volumes = []VolumeMedia{{Name: "facts", DownwardAPI: &DownwardAPIVolume{Items: []DownwardAPIFile{{Path: "cpu", ResourceFieldRef: &ResourceFieldRef{Resource: "requests.cpu"}}}}}}
			}, func(t *Template) { t.Spec.Containers[0].Resources.Limits = amounts(1000, 65) }, resources, true, "file cpu shows",
		},
		"the class of memory": {nil, func(t *Template) {
			t.Spec.InitContainers = t.Spec.InitContainers[:0]
			t.Spec.Containers = t.Spec.Containers[:1]
			t.Spec.Containers[0].Resources = ResourceRequirements{Limits: amounts(100, 64), Requests: amounts(100, 64)}
		}, resources, false, "from Burstable to Guaranteed"},
		"a volume that the limits bound":     {memoryVolume(nil), func(t *Template) { limitAll(t, 65) }, resources, true, "its volume ram"},
		"a volume that they do not bound":    {memoryVolume(&scalar.Quantity{Milli: 8 << 20 * 1000}), func(t *Template) { limitAll(t, 65) }, resources, true, ""},
		"a volume whose own limit is larger": {memoryVolume(&scalar.Quantity{Milli: 900 << 20 * 1000}), func(t *Template) { limitAll(t, 65) }, resources, true, "its volume ram"},
	} {
		t.Run(name, func(t *testing.T) {
			from, to := several(), several()
			if tc.from != nil {
				tc.from(&from)
				tc.from(&to)
			}
			tc.change(&to)
			before := Clone(to)
			c, rest, why := from.ChangeInPlace(&to)
			if same := SameTemplate(from, rest); c != tc.want || same != tc.same {
				t.Errorf("changes %+v, and nothing else %t; want %+v, %t", c, same, tc.want, tc.same)
			}
			if (why == "") != (tc.why == "") || !strings.Contains(why, tc.why) {
				t.Errorf("says %q, want %q", why, tc.why)
			}
			if !reflect.DeepEqual(to, before) {
				t.Error("what is to be was changed")
			}
		})
	}
}

func memoryVolume(limit *scalar.Quantity) func(*Template) {
	return func(t *Template) {
		limitAll(t, 64)
		t.Spec.Volumes = []VolumeMedia{{Name: "ram", EmptyDir: &EmptyDir{Medium: MediumMemory, SizeLimit: limit}}}
	}
}

func limitAll(t *Template, memory int64) {
	t.Spec.Containers[0].Resources.Limits = amounts(1000, memory)
}

// Each field of a template, of a member and of a container, also one that somebody adds, asks for a new life: but those that are named.
func TestAFieldThatIsNotNamedAsksForANewLife(t *testing.T) {
	inPlace := map[string]bool{"Container.Image": true, "Container.Resources": true}
	found := 0
	each := func(of string, at func(*Template) reflect.Value) {
		from := several()
		fields := at(&from).Type()
		for i := range fields.NumField() {
			name := of + "." + fields.Field(i).Name
			to := several()
			if !somethingElse(at(&to).Field(i)) {
				t.Errorf("%s was not changed: this test does not know its type", name)
				continue
			}
			_, rest, _ := from.ChangeInPlace(&to)
			if SameTemplate(from, to) { // its name and namespace, which nobody runs
				continue
			}
			same := SameTemplate(from, rest)
			if inPlace[name] {
				found++
			}
			if same != inPlace[name] {
				t.Errorf("%s changes in place: %t", name, same)
			}
		}
	}
	each("Template", func(t *Template) reflect.Value { return reflect.ValueOf(t).Elem() })
	each("MemberSpec", func(t *Template) reflect.Value { return reflect.ValueOf(&t.Spec).Elem() })
	each("Container", func(t *Template) reflect.Value { return reflect.ValueOf(&t.Spec.Containers[0]).Elem() })
	if found != len(inPlace) {
		t.Errorf("%d of the fields were tried, want %d", found, len(inPlace))
	}
}

// somethingElse gives v another value; false: it does not know how.
func somethingElse(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.String:
		v.SetString(v.String() + "-other")
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Int32, reflect.Int64, reflect.Int:
		v.SetInt(v.Int() + 7)
	case reflect.Pointer:
		if !v.IsNil() {
			v.SetZero()
			return true
		}
		v.Set(reflect.New(v.Type().Elem()))
		return somethingElse(v.Elem())
	case reflect.Interface:
		v.Set(reflect.ValueOf("other"))
	case reflect.Slice:
		v.Set(reflect.Append(v, reflect.New(v.Type().Elem()).Elem()))
		return v.Index(v.Len()-1).Kind() != reflect.Struct || somethingElse(v.Index(v.Len()-1))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		value := reflect.New(v.Type().Elem()).Elem()
		somethingElse(value)
		v.SetMapIndex(reflect.ValueOf("other").Convert(v.Type().Key()), value)
	case reflect.Struct:
		switch q := v.Addr().Interface().(type) {
		case *ResourceRequirements:
			q.Limits = amounts(5, 5)
		case *scalar.Quantity:
			q.Milli += 1000
		case *MemberSpec:
			q.DNSPolicy = "None"
		case *ObjectMeta:
			q.Annotations = map[string]string{"other": "value"}
		default:
			for i := range v.NumField() {
				if v.Field(i).CanSet() && somethingElse(v.Field(i)) {
					return true
				}
			}
			return false
		}
	default:
		return false
	}
	return true
}
