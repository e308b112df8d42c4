package registry

import (
	"cmp"
	"net"
	"net/url"
	"path"
	"slices"
	"strings"
)

// hub is the name under which docker keeps the credentials of its own registry.
const hub = "index.docker.io"

// Keyring is credentials by what they are for, as Kubernetes' kubelet keeps them. The zero value
// has none.
type Keyring struct{ keys []key } // by place descending, so that longer paths come first

// key is the credentials for one place: a registry, or a part of it, without a scheme.
type key struct {
	place       string
	credentials []Login
}

// NewKeyring keeps what the Secrets of a member have; of those for the same place, those of
// earlier Secrets come first.
func NewKeyring(configs ...Entries) Keyring {
	places := map[string][]Login{}
	for _, c := range configs {
		for _, at := range c.sorted() {
			if place, ok := placeOf(at); ok {
				places[place] = append(places[place], Login{c[at].Username, c[at].Password})
			}
		}
	}
	var out Keyring
	for place, credentials := range places {
		out.keys = append(out.keys, key{place, credentials})
	}
	slices.SortFunc(out.keys, func(a, b key) int { return cmp.Compare(b.place, a.place) })
	return out
}

// sorted are the places of c, as they are written, in ascending order.
func (c Entries) sorted() []string {
	out := make([]string, 0, len(c))
	for at := range c {
		out = append(out, at)
	}
	slices.Sort(out)
	return out
}

// placeOf is a place without scheme and without the version of the registry's API.
func placeOf(at string) (string, bool) {
	if !strings.HasPrefix(at, "https://") && !strings.HasPrefix(at, "http://") {
		at = "https://" + at
	}
	u, err := url.Parse(at)
	if err != nil {
		return "", false
	}
	below := u.Path
	if strings.HasPrefix(below, "/v2/") || strings.HasPrefix(below, "/v1/") {
		below = below[3:]
	}
	if below == "/" {
		below = ""
	}
	return u.Host + below, true
}

// For are the credentials that match an image, in the order in which they are to be tried; none:
// it is pulled without.
func (k Keyring) For(image string) []Login {
	var out []Login
	for _, has := range k.keys {
		if matches(has.place, repository(image)) {
			out = append(out, has.credentials...)
		}
	}
	if len(out) > 0 || !isHub(image) {
		return out
	}
	for _, has := range k.keys {
		if has.place == hub {
			return has.credentials
		}
	}
	return nil
}

// matches reports whether the parts of the host's name match, each of which may be a pattern, the
// port is the same, and the path of the image begins with that of the place.
func matches(place, repository string) bool {
	want, err := url.Parse("https://" + place)
	if err != nil {
		return false
	}
	has, err := url.Parse("https://" + repository)
	if err != nil {
		return false
	}
	wantParts, wantPort := splitHost(want.Host)
	parts, port := splitHost(has.Host)
	if wantPort != port || len(wantParts) != len(parts) || !strings.HasPrefix(has.Path, want.Path) {
		return false
	}
	for i, pattern := range wantParts {
		if ok, err := path.Match(pattern, parts[i]); err != nil || !ok {
			return false
		}
	}
	return true
}

func splitHost(text string) (parts []string, port string) {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		host, port = text, ""
	}
	return strings.Split(host, "."), port
}

// isHub reports whether the image is docker's own registry's.
func isHub(image string) bool {
	host := Host(image)
	return host == "docker.io" || host == hub
}
