package files

import (
	"strings"
	"testing"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

// pullSecret is a Secret with credentials of reg.example.
func pullSecret(name, password string) records.Files {
	return records.Files{
		Kind: KindSecret, Namespace: "prod", Name: name, Type: spec.SecretDockerConfigJSON,
		Content: map[string]scalar.Bytes{".dockerconfigjson": scalar.Bytes(`{"auths": {"reg.example": {"username": "` + name + `", "password": "` + password + `"}}}`)},
	}
}

func pulling(secrets ...string) *records.Life {
	l := life()
	for _, name := range secrets {
		l.Template.Spec.ImagePullSecrets = append(l.Template.Spec.ImagePullSecrets, spec.PullSecret{Name: name})
	}
	return l
}

func TestCredentialsAreThoseOfTheSecretsThatAreThere(t *testing.T) {
	opaque := records.Files{Kind: KindSecret, Namespace: "prod", Name: "opaque", Type: "Opaque", Content: map[string]scalar.Bytes{".dockerconfigjson": []byte("{}")}}
	gone := records.Files{Kind: KindSecret, Namespace: "prod", Name: "gone", Absent: true}
	find := book(pullSecret("a", "1"), pullSecret("b", "2"), opaque, gone)
	got, err := CredentialsOf(pulling("gone", "b", "", "opaque", "a"), find)
	must(t, err)
	users := ""
	for _, c := range got.Keyring.For("reg.example/x") {
		users += c.User
	}
	equal(t, "in the order of the template", users, "ba")
	equal(t, "what is left out", got.UnusedText(), "there is no Secret gone, and Secret opaque, of the type Opaque, has no credentials of a registry")
	if none, err := CredentialsOf(pulling(), find); err != nil || none.Print != "" || none.UnusedText() != "" || none.Keyring.For("reg.example/x") != nil {
		t.Errorf("a life without any: %v, %+v", err, none)
	}
}

func TestASecretThatCannotBeReadIsNamedWithoutItsContent(t *testing.T) {
	bad := pullSecret("bad", "1")
	bad.Content[".dockerconfigjson"] = []byte("{hunter2")
	got, err := CredentialsOf(pulling("bad"), book(bad))
	if err == nil || !strings.Contains(err.Error(), "imagePullSecrets: Secret bad") || strings.Contains(err.Error(), "hunter2") || got.Print == "" {
		t.Errorf("got %v", err)
	}
}

func TestTheirPrintChangesWithThem(t *testing.T) {
	other := pullSecret("a", "1")
	other.Type = spec.SecretDockercfg
	seen := map[string]string{}
	for name, find := range map[string]Lookup{
		"absent": book(records.Files{Kind: KindSecret, Namespace: "prod", Name: "a", Absent: true}), "there": book(pullSecret("a", "1")),
		"another password": book(pullSecret("a", "2")), "another type": book(other),
	} {
		got, err := CredentialsOf(pulling("a"), find)
		must(t, err)
		if was, twice := seen[got.Print]; twice || got.Print == "" {
			t.Errorf("%s has the print %q, like %s", name, got.Print, was)
		}
		seen[got.Print] = name
		again, err := CredentialsOf(pulling("a"), find)
		must(t, err)
		equal(t, name, again.Print, got.Print)
		if strings.Contains(got.Print, "1") && len(got.Print) < 32 {
			t.Errorf("%s shows the password", name)
		}
	}
}

func TestALifeIsWokenByItsPullSecretsAndWaitsForThemToBeSent(t *testing.T) {
	l := pulling("a", "")
	is := func(kind, name string) bool {
		return IsNamed(l, func(s FileSource) bool { return s == FileSource{kind, "prod", name} })
	}
	if !is(KindSecret, "a") || is(KindSecret, "b") || is(KindConfigMap, "a") {
		t.Error("it is woken by others, or not by its own")
	}
	equal(t, "not sent", UnsentPullSecret(l, book()), "the server has not sent Secret a of imagePullSecrets yet")
	equal(t, "absent", UnsentPullSecret(l, book(records.Files{Kind: KindSecret, Namespace: "prod", Name: "a", Absent: true})), "")
}

func TestAnotherTypeIsAChange(t *testing.T) {
	c := &Cache{}
	c.Put(true, []records.Files{pullSecret("a", "1")})
	other := pullSecret("a", "1")
	other.Type = "Opaque"
	if changed := c.Put(true, []records.Files{other}); !changed[FileSource{KindSecret, "prod", "a"}] {
		t.Error("it was not noticed")
	}
}
