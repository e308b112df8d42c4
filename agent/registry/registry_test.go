package registry_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stead-project/stead/agent/registry"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

// secret parses a Secret of type dockerconfigjson.
func secret(t *testing.T, auths string) registry.Entries {
	t.Helper()
	c, err := registry.ParseSecret(spec.SecretDockerConfigJSON, map[string]scalar.Bytes{".dockerconfigjson": scalar.Bytes(`{"auths":` + auths + `}`)})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestNamesAreWrittenInFull(t *testing.T) {
	for image, want := range map[string]string{
		"box": "docker.io/library/box:latest", "box:1": "docker.io/library/box:1", "team/box": "docker.io/team/box:latest",
		"localhost/box": "localhost/box:latest", "reg:5000/box": "reg:5000/box:latest", "reg.example/a/b@sha256:0": "reg.example/a/b@sha256:0",
	} {
		if got := registry.FullName(image); got != want {
			t.Errorf("%s: got %s, want %s", image, got, want)
		}
	}
	for image, want := range map[string]string{"box": "docker.io", "reg:5000/box:1": "reg:5000", "localhost/x": "localhost"} {
		if got := registry.Host(image); got != want {
			t.Errorf("host of %s: got %s, want %s", image, got, want)
		}
	}
}

// The cases of Kubernetes' own tests of its keyring, and those of its documentation.
func TestCredentialsMatchAsInKubernetes(t *testing.T) {
	for _, c := range []struct {
		places []string
		image  string
		want   []string // the places whose credentials are tried, in order
	}{
		{[]string{"reg.example"}, "reg.example/box:1", []string{"reg.example"}},
		{[]string{"https://reg.example"}, "reg.example/a/b/c@sha256:0", []string{"https://reg.example"}},
		{[]string{"https://reg.example/v1/"}, "reg.example/box", []string{"https://reg.example/v1/"}},
		{[]string{"http://reg.example/v2/"}, "reg.example/box", []string{"http://reg.example/v2/"}},
		{[]string{"reg.example"}, "reg.example:5000/box", nil},
		{[]string{"reg.example:5000"}, "reg.example:5000/box", []string{"reg.example:5000"}},
		{[]string{"reg.example:5000"}, "reg.example/box", nil},
		{[]string{"reg.example"}, "other.example/box", nil},
		{[]string{"reg.example"}, "sub.reg.example/box", nil},
		{[]string{"*.reg.example"}, "sub.reg.example/box", []string{"*.reg.example"}},
		{[]string{"*.reg.example"}, "reg.example/box", nil},
		{[]string{"*.reg.example"}, "a.b.reg.example/box", nil},
		{[]string{"pre*.reg.example"}, "prefix.reg.example/box", []string{"pre*.reg.example"}},
		{[]string{"*.*.example:80"}, "a.reg.example:80/box", []string{"*.*.example:80"}},
		{[]string{"reg.example/team"}, "reg.example/team/box", []string{"reg.example/team"}},
		{[]string{"reg.example/team"}, "reg.example/teams/box", []string{"reg.example/team"}}, // so in Kubernetes
		{[]string{"reg.example/team"}, "reg.example/box", nil},
		{[]string{"reg.example/team/box"}, "reg.example/team/box:1", []string{"reg.example/team/box"}},
		{[]string{"reg.example", "reg.example/team", "reg.example/team/box"}, "reg.example/team/box:1",
			[]string{"reg.example/team/box", "reg.example/team", "reg.example"}},
		{[]string{"*.example", "reg.example"}, "reg.example/box", []string{"reg.example", "*.example"}},
		{[]string{"[.example", "reg.example"}, "reg.example/box", []string{"reg.example"}},
		{[]string{"https://index.docker.io/v1/"}, "box", []string{"https://index.docker.io/v1/"}},
		{[]string{"index.docker.io"}, "team/box:1", []string{"index.docker.io"}},
		{[]string{"https://index.docker.io/v1/"}, "docker.io/team/box", []string{"https://index.docker.io/v1/"}},
		{[]string{"https://index.docker.io/v1/", "docker.io"}, "docker.io/team/box", []string{"docker.io"}},
		{[]string{"https://index.docker.io/v1/"}, "reg.example/box", nil},
		{[]string{"https://index.docker.io/v1/"}, "localhost/box", nil},
	} {
		var auths []string
		for _, place := range c.places {
			auths = append(auths, fmt.Sprintf("%q: {\"username\": %q, \"password\": \"p\"}", place, place))
		}
		var got []string
		for _, found := range registry.NewKeyring(secret(t, "{"+strings.Join(auths, ",")+"}")).For(c.image) {
			got = append(got, found.User)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s with %q: tried %q, want %q", c.image, c.places, got, c.want)
		}
	}
}

func TestSecretsForTheSamePlaceAreTriedInTheirOrder(t *testing.T) {
	k := registry.NewKeyring(secret(t, `{"reg.example": {"username": "a", "password": "1"}}`),
		secret(t, `{"https://reg.example": {"username": "b", "password": "2"}, "reg.example/x": {"username": "c"}}`))
	if got, want := k.For("reg.example/x/y"), []registry.Login{{User: "c"}, {User: "a", Password: "1"}, {User: "b", Password: "2"}}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %d credentials, want c, a, b", len(got))
	}
	if got := (registry.Keyring{}).For("reg.example/x"); got != nil {
		t.Error("an empty keyring has credentials")
	}
}

func TestSecretsAreReadByTheirType(t *testing.T) {
	encoded := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	pair := `{"reg.example": {"username": "u", "password": "p", "email": "x@y"}}`
	for name, c := range map[string]struct {
		kind, key, text string
		want            registry.Login
		none            bool
		problem         string
	}{
		"a name and a password":                {spec.SecretDockerConfigJSON, ".dockerconfigjson", `{"auths":` + pair + `}`, registry.Login{User: "u", Password: "p"}, false, ""},
		"the old form":                         {spec.SecretDockercfg, ".dockercfg", pair, registry.Login{User: "u", Password: "p"}, false, ""},
		"auth, which counts":                   {spec.SecretDockercfg, ".dockercfg", `{"reg.example": {"username": "x", "password": "y", "auth": "` + encoded("u:p:q") + `"}}`, registry.Login{User: "u", Password: "p:q"}, false, ""},
		"auth without padding":                 {spec.SecretDockercfg, ".dockercfg", `{"reg.example": {"auth": "` + strings.TrimRight(encoded("u:p"), "=") + `"}}`, registry.Login{User: "u", Password: "p"}, false, ""},
		"the key of the other type":            {spec.SecretDockercfg, ".dockerconfigjson", `{"auths":` + pair + `}`, registry.Login{}, true, ""},
		"another type":                         {"Opaque", ".dockerconfigjson", `{"auths":` + pair + `}`, registry.Login{}, true, ""},
		"no type":                              {"", "", `{"auths":` + pair + `}`, registry.Login{}, true, ""},
		"nothing in it":                        {spec.SecretDockerConfigJSON, ".dockerconfigjson", ``, registry.Login{}, true, ""},
		"no JSON":                              {spec.SecretDockerConfigJSON, ".dockerconfigjson", `{"auths": hunter2`, registry.Login{}, false, "is not a configuration of docker"},
		"a number for a password":              {spec.SecretDockercfg, ".dockercfg", `{"reg.example": {"password": 4711}}`, registry.Login{}, false, "is not a configuration of docker"},
		"auth that is not base64":              {spec.SecretDockercfg, ".dockercfg", `{"reg.example": {"auth": "hunter2!"}}`, registry.Login{}, false, `the field auth of "reg.example"`},
		"auth without a colon":                 {spec.SecretDockercfg, ".dockercfg", `{"reg.example": {"auth": "` + encoded("hunter2") + `"}}`, registry.Login{}, false, `the field auth of "reg.example"`},
		"an entry without anything":            {spec.SecretDockercfg, ".dockercfg", `{"reg.example": {}}`, registry.Login{}, false, ""},
		"further fields, as of docker's login": {spec.SecretDockerConfigJSON, ".dockerconfigjson", `{"credsStore": "x", "auths":` + pair + `}`, registry.Login{User: "u", Password: "p"}, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			config, err := registry.ParseSecret(c.kind, map[string]scalar.Bytes{c.key: scalar.Bytes(c.text)})
			if c.problem != "" {
				if err == nil || !strings.Contains(err.Error(), c.problem) || strings.Contains(err.Error(), "hunter2") {
					t.Errorf("got %v, want %q without the content", err, c.problem)
				}
				return
			}
			got := registry.NewKeyring(config).For("reg.example/box")
			switch {
			case err != nil:
				t.Error(err)
			case c.none:
				if config != nil || got != nil {
					t.Error("it has credentials")
				}
			case len(got) != 1 || got[0] != c.want:
				t.Errorf("%d credentials, or another one", len(got))
			}
		})
	}
}

func TestACredentialShowsItselfToNobody(t *testing.T) {
	c := registry.Login{User: "somebody", Password: "hunter2"}
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "credential", c)
	said := fmt.Sprintf("%v %+v %#v %s", c, &c, c, []registry.Login{c}) + log.String()
	if strings.Contains(said, "hunter2") || strings.Contains(said, "somebody") {
		t.Error(said)
	}
}
