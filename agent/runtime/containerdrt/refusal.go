package containerdrt

import (
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/containerd/containerd/v2/core/remotes/docker"
	remoteerrors "github.com/containerd/containerd/v2/core/remotes/errors"
	"github.com/containerd/errdefs"

	"github.com/stead-project/stead/agent/registry"
	"github.com/stead-project/stead/agent/runtime"
)

// refusalBytes bounds what is repeated of a registry's words.
const refusalBytes = 500

// refusalOf says why a registry did not deliver an image, and what to do. It has no error of the
// library in it, and nothing of the credential: whoever prints it prints what is written here.
func refusalOf(err error, c registry.Login, image, hostsDir string) error {
	host, text := registry.Host(image), plainRefusal(err, c)
	kind, what, fix := runtime.ErrImagePull, "", ""
	_, mistake := errors.AsType[*hostsError](err)
	status, answered := errors.AsType[remoteerrors.ErrUnexpectedStatus](err)
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	_, noRequest := errors.AsType[*url.Error](err)
	_, brokenOff := errors.AsType[*net.OpError](err)
	switch {
	case mistake:
		what, fix = "the registry is configured wrongly", "correct that file"
	case errors.Is(err, docker.ErrInvalidAuthorization),
		answered && (status.StatusCode == http.StatusUnauthorized || status.StatusCode == http.StatusForbidden):
		what, fix = host+" refuses access", "name a Secret with credentials for "+host+" in imagePullSecrets"
		if c != (registry.Login{}) {
			what, fix = host+" refuses the credentials of imagePullSecrets", "correct the Secret"
		}
	case answered && status.StatusCode == http.StatusTooManyRequests:
		what = host + " limits requests"
		fix = "name a Secret with credentials for " + host + " in imagePullSecrets, or use a mirror (" + hostsFile(hostsDir, image) + ")"
	case errdefs.IsNotFound(err), errdefs.IsInvalidArgument(err):
		kind = runtime.ErrImageMissing
		what, fix = "no such image, or access is denied", "correct its name, or load it with `stead image load`"
	case untrusted:
		what, fix = host+" is not trusted", "if it has a CA of its own, write ca = \"FILE\" into "+hostsFile(hostsDir, image)
	case errors.Is(err, http.ErrSchemeMismatch):
		what, fix = host+" does not speak TLS", "if that is meant to be, write server = \"http://"+host+"\" into "+hostsFile(hostsDir, image)
	case noRequest, brokenOff:
		what, fix = host+" cannot be reached from this node", "check its network, its name servers, and the mirrors of "+hostsFile(hostsDir, image)
	default:
		what, fix = "the registry did not deliver it", "see the message of the registry"
	}
	return fmt.Errorf("%s: %w: %s; %s", what, kind, text, fix)
}

// query matches what follows the path of an address: in one that asks for a token, it has the user's
// name.
var query = regexp.MustCompile(`\?[^\s"]*`)

// plainRefusal is the text of an error, in one line, without addresses' queries and without the
// credential, which a registry may repeat.
func plainRefusal(err error, c registry.Login) string {
	text := strings.Join(strings.Fields(query.ReplaceAllString(err.Error(), "")), " ")
	for _, secret := range []string{c.Password, base64.StdEncoding.EncodeToString([]byte(c.User + ":" + c.Password))} {
		if c.Password != "" {
			text = strings.ReplaceAll(text, secret, "***")
		}
	}
	if len(text) > refusalBytes {
		text = strings.ToValidUTF8(text[:refusalBytes], "") + " …"
	}
	return text
}
