package containerdrt

import (
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stead-project/stead/agent/registry"
	"github.com/stead-project/stead/agent/runtime"
)

const (
	rightUser, rightPassword = "robot", "hunter2"
	testImage                = "reg.example/team/box:1"
)

// shelf is a registry that has one tag, and answers as a test has it.
type shelf struct {
	*httptest.Server
	t     *testing.T
	dir   string // with hosts.toml
	asked int
}

// newShelf serves with TLS of an own CA unless plain; answer says whether it took the request.
func newShelf(t *testing.T, plain bool, answer func(w http.ResponseWriter, q *http.Request) bool) *shelf {
	t.Helper()
	s := &shelf{t: t, dir: t.TempDir()}
	handler := http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		s.asked++
		if answer != nil && answer(w, q) {
			return
		}
		if !strings.HasSuffix(q.URL.Path, "/team/box/manifests/1") {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		w.Header().Set("Docker-Content-Digest", "sha256:"+strings.Repeat("0", 64))
		w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
		w.Header().Set("Content-Length", "2")
	})
	s.Server = httptest.NewUnstartedServer(handler)
	s.Config.ErrorLog = nil
	if plain {
		s.Start()
	} else {
		s.StartTLS()
		ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
		if err := os.WriteFile(filepath.Join(s.dir, "ca.pem"), ca, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(s.Close)
	return s
}

// configure writes the hosts.toml of reg.example.
func (s *shelf) configure(format string, args ...any) {
	s.t.Helper()
	dir := filepath.Join(s.dir, "reg.example")
	err := os.MkdirAll(dir, 0o700)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "hosts.toml"), fmt.Appendf(nil, format, args...), 0o600)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// resolve asks for the tag; its error is what a pull would report.
func (s *shelf) resolve(c registry.Login, image string) error {
	s.t.Helper()
	_, _, err := newResolver(s.t.Context(), s.dir, c).Resolve(s.t.Context(), image)
	if err == nil {
		return nil
	}
	return refusalOf(err, c, image, s.dir)
}

// basic wants the right name and password.
func basic(w http.ResponseWriter, q *http.Request) bool {
	user, password, _ := q.BasicAuth()
	if user == rightUser && password == rightPassword {
		return false
	}
	w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
	w.WriteHeader(http.StatusUnauthorized)
	return true
}

// bearer wants a token, which it gives for the right name and password.
func bearer(w http.ResponseWriter, q *http.Request) bool {
	switch {
	case q.URL.Path == "/token":
		if !basic(w, q) {
			fmt.Fprint(w, `{"token": "t0"}`)
		}
	case q.Header.Get("Authorization") == "Bearer t0":
		return false
	default:
		w.Header().Set("WWW-Authenticate", `Bearer realm="https://`+q.Host+`/token",service="x",scope="repository:team/box:pull"`)
		w.WriteHeader(http.StatusUnauthorized)
	}
	return true
}

// parrot repeats what it is shown.
func parrot(w http.ResponseWriter, q *http.Request) bool {
	if q.Header.Get("Authorization") == "" {
		return basic(w, q)
	}
	_, password, _ := q.BasicAuth()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusForbidden)
	fmt.Fprintf(w, `{"errors": [{"code": "DENIED", "message": "no %s with %s%s"}]}`, password, q.Header.Get("Authorization"), strings.Repeat("x", 5000))
	return true
}

func status(code int) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(code); return true }
}

func TestARegistrysRefusalSaysWhatToDo(t *testing.T) {
	right, wrong := registry.Login{User: rightUser, Password: rightPassword}, registry.Login{User: rightUser, Password: "hunter3"}
	const trusted, untrusted = "server = \"%s\"\nca = \"../ca.pem\"\n", "server = \"%s\"\n"
	for name, c := range map[string]struct {
		plain  bool
		answer func(http.ResponseWriter, *http.Request) bool
		hosts  string
		with   registry.Login
		image  string
		want   []string // parts of the message; none: it is found
		kind   error
	}{
		"an own CA":                        {hosts: trusted},
		"which is not configured":          {hosts: untrusted, want: []string{"reg.example is not trusted", "x509", `write ca = "FILE" into`, "reg.example/hosts.toml"}},
		"plain http, configured":           {plain: true, hosts: untrusted},
		"plain http where TLS is expected": {plain: true, hosts: "server = \"https://%[2]s\"\n", want: []string{"does not speak TLS", `server = "http://reg.example"`}},
		"nobody listens":                   {hosts: "server = \"https://127.0.0.1:1\"\n#%s", want: []string{"cannot be reached from this node", "connection refused"}},
		"no such tag":                      {hosts: trusted, image: "reg.example/team/none:1", want: []string{"no such image"}, kind: runtime.ErrImageMissing},
		"credentials are wanted":           {answer: basic, hosts: trusted, want: []string{"reg.example refuses access", "imagePullSecrets"}},
		"they are right":                   {answer: basic, hosts: trusted, with: right},
		"they are wrong":                   {answer: basic, hosts: trusted, with: wrong, want: []string{"refuses the credentials of imagePullSecrets", "401", "correct the Secret"}},
		"a token is wanted":                {answer: bearer, hosts: trusted, want: []string{"reg.example refuses access"}},
		"and given":                        {answer: bearer, hosts: trusted, with: right},
		"but not for wrong ones":           {answer: bearer, hosts: trusted, with: wrong, want: []string{"refuses the credentials of imagePullSecrets", "401"}},
		"a registry that repeats them":     {answer: parrot, hosts: trusted, with: right, want: []string{"refuses the credentials", "403", "***", "…"}},
		"too many requests":                {answer: status(http.StatusTooManyRequests), hosts: trusted, want: []string{"limits requests", "mirror"}},
		"a broken registry":                {answer: status(http.StatusInternalServerError), hosts: trusted, want: []string{"did not deliver it", "500"}},
		"a mirror that is broken":          {hosts: "server = \"%[1]s\"\nca = \"../ca.pem\"\n[host.\"https://127.0.0.1:1\"]\n"},
		"a mirror that is configured":      {hosts: "server = \"https://127.0.0.1:1\"\n[host.\"%[1]s\"]\nca = \"../ca.pem\"\n"},
		"a hosts.toml that is no TOML":     {hosts: "server = \n#%s", want: []string{"configured wrongly", "reg.example", "failed to decode"}},
		"a capability that does not exist": {hosts: "server = \"%s\"\ncapabilities = [\"pul\"]\n", want: []string{"configured wrongly", "pul"}},
		"a CA that is not there":           {hosts: "server = \"%s\"\nca = \"none.pem\"\n", want: []string{"configured wrongly", "none.pem"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShelf(t, c.plain, c.answer)
			if strings.Contains(c.hosts, "%[") {
				s.configure(c.hosts+"#%[1]s%[2]s", s.URL, s.Listener.Addr())
			} else {
				s.configure(c.hosts, s.URL)
			}
			image := testImage
			if c.image != "" {
				image = c.image
			}
			err := s.resolve(c.with, image)
			if len(c.want) == 0 {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if err == nil {
				t.Fatal("it is found")
			}
			kind := c.kind
			if kind == nil {
				kind = runtime.ErrImagePull
			}
			if !errors.Is(err, kind) {
				t.Errorf("got %v, want the kind %q", err, kind)
			}
			for _, part := range c.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("got %q, want %q in it", err, part)
				}
			}
			for _, secret := range []string{"hunter", rightUser, "cm9ib3Q6aHVudGVy", "\n"} {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("the message has %q in it: %s", secret, err)
				}
			}
			if len(err.Error()) > refusalBytes+600 {
				t.Errorf("it is %d bytes long", len(err.Error()))
			}
		})
	}
}

func TestARegistryWithoutConfigurationIsAskedByTLSAlone(t *testing.T) {
	for host, want := range map[string]string{"reg.example": "https://reg.example", "reg.example:80": "https://reg.example:80", "docker.io": "https://registry-1.docker.io"} {
		found, err := registryHosts(t.Context(), t.TempDir(), registry.Login{})(host)
		if err != nil || len(found) != 1 || found[0].Scheme+"://"+found[0].Host != want {
			t.Errorf("%s: got %+v, %v, want %s", host, found, err, want)
		}
	}
}
