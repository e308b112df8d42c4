package trust

import (
	"bytes"
	"crypto/x509"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestACertificateNamesOneSubjectOrNobody(t *testing.T) {
	for _, s := range []Subject{
		{"0123456789abcdef", RoleNode, "host-a", "u1", ""}, {"0123456789abcdef", RoleNode, "host-a.example", "0f", ""},
		{"0123456789abcdef", RoleAdmin, "ann", "id", ""}, {"0123456789abcdef", RoleServer, "s1", "", ""},
		{"0123456789abcdef", RoleOperator, "ann", "id", ""}, {"0123456789abcdef", RoleViewer, "ann", "id", "shop,shop-test"},
	} {
		got, err := SubjectOf(&x509.Certificate{URIs: []*url.URL{s.URL()}})
		if err != nil || got != s {
			t.Errorf("%+v: got %+v, %v", s, got, err)
		}
	}
	for _, uris := range [][]string{
		nil, {""}, {"https://0123456789abcdef/node/a/u"}, {"stead://0123456789abcdef/node/a/u", "stead://0123456789abcdef/node/b/u"},
		{"stead://0123456789abcdef/node/a"}, {"stead://0123456789abcdef/node/a/"}, {"stead://0123456789abcdef/node/a/u/x"},
		{"stead://0123456789abcdef/node/a/u?x"}, {"stead://0123456789abcdef/node/a/u#x"}, {"stead://x@0123456789abcdef/node/a/u"},
		{"stead://0123456789abcdef/node/A/u"}, {"stead://0123456789abcdef/root/a/u"}, {"stead:///node/a/u"},
		{"stead://0123456789abcdef/node/a%2Fb/u"}, {"stead://0123456789abcdef//node/a/u"}, {"stead://0123456789abcdef/server/a/u/"},
		{"stead://0123456789abcdef/admin/a/u/shop"}, {"stead://0123456789abcdef/viewer/a/u/shop,"}, {"stead://0123456789abcdef/viewer/a/u/"},
		{"stead://0123456789abcdef/viewer/a/u/shop/x"}, {"stead://0123456789abcdef/viewer/a/u/Shop"}, {"stead://0123456789abcdef/owner/a/u"},
	} {
		var cert x509.Certificate
		for _, text := range uris {
			u, err := url.Parse(text)
			must(t, err)
			cert.URIs = append(cert.URIs, u)
		}
		if s, err := SubjectOf(&cert); err == nil {
			t.Errorf("%q names %+v", uris, s)
		}
	}
}

func TestAJoinTokenIsReadAsItWasWrittenAndShowsNothing(t *testing.T) {
	token := NewJoinToken(Pin{1, 2, 3})
	got, err := ParseJoinToken(token.Text() + "\n")
	if err != nil || got.ID != token.ID || !bytes.Equal(got.Secret, token.Secret) || got.Pin != token.Pin {
		t.Fatalf("got %v, %v", got, err)
	}
	secret := strings.Split(token.Text(), ".")[1]
	for _, shown := range []string{fmt.Sprint(token), fmt.Sprintf("%+v %#v %s", token, token, token)} {
		if strings.Contains(shown, secret) || strings.Contains(shown, fmt.Sprint(token.Secret[:4])[1:8]) {
			t.Errorf("it shows %s", shown)
		}
	}
	other := NewJoinToken(Pin{})
	if other.ID == token.ID || bytes.Equal(other.Secret, token.Secret) {
		t.Error("two tokens are alike")
	}
}

func FuzzParseJoinToken(f *testing.F) {
	token := NewJoinToken(Pin{1})
	for _, text := range []string{token.Text(), "", "..", "a.b.c", token.Text()[1:], token.Text() + "x", strings.ToUpper(token.Text())} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := ParseJoinToken(text)
		switch {
		case err == nil && got.Text() != strings.TrimSpace(text):
			// base64 leaves room for one more spelling of the last digit; what is read is the same.
			again, err := ParseJoinToken(got.Text())
			if err != nil || !bytes.Equal(again.Secret, got.Secret) || again.Pin != got.Pin {
				t.Errorf("%q was read as another token", text)
			}
		case err != nil && len(text) > 8 && strings.Contains(err.Error(), text):
			t.Error("the error shows the token")
		}
	})
}

func TestACredentialIsKeptForItsOwnerOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.json")
	c, err := NewCredential([]string{"a:1"})
	must(t, err)
	must(t, c.Save(path))
	must(t, c.Save(path)) // replaced, whole
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("got %v, %v", info, err)
	}
	got, err := Load(path)
	if err != nil || !bytes.Equal(got.Key, c.Key) || got.Servers[0] != "a:1" {
		t.Fatalf("got %v", err)
	}
	if strings.Contains(fmt.Sprintf("%v %+v", c, *c), fmt.Sprint([]byte(c.Key[:4]))[1:8]) {
		t.Error("it shows its key")
	}
	must(t, os.Chmod(path, 0o640))
	if _, err := Load(path); err == nil || !strings.Contains(err.Error(), "is open to others") {
		t.Errorf("open to others: got %v", err)
	}
	must(t, os.Chmod(path, 0o600))
	for _, text := range []string{"", "{", "{}", `{"key":"QUJD"}`} {
		must(t, os.WriteFile(path, []byte(text), 0o600))
		if _, err := Load(path); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
}
