package files

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/stead-project/stead/agent/registry"
	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// Credentials is what a life's imagePullSecrets have.
type Credentials struct {
	Keyring registry.Keyring
	// Unused says of each Secret that has no credentials why it has none.
	Unused []string
	// Print is another one when the Secrets have changed; "": the life names none.
	Print string
}

// CredentialsOf reads the Secrets of the life's imagePullSecrets.
func CredentialsOf(l *records.Life, find Lookup) (Credentials, error) {
	return CredentialsIn(l.Member.ID.Namespace, l.Template.Spec.ImagePullSecrets, find)
}

// CredentialsIn reads these Secrets of a namespace. As in Kubernetes 1.33, one that is
// not there, or is of another type, is left out, and one that cannot be read is an error. Nothing
// of their content is in an error.
func CredentialsIn(ns spec.Namespace, secrets []spec.PullSecret, find Lookup) (Credentials, error) {
	var out Credentials
	var configs []registry.Entries
	sum := sha256.New()
	for _, ref := range secrets {
		if ref.Name == "" {
			continue
		}
		f, known := find(KindSecret, ns, ref.Name)
		if !known || f.Absent {
			out.Unused = append(out.Unused, fmt.Sprintf("there is no Secret %s", ref.Name))
			fmt.Fprintf(sum, "%s is absent\n", ref.Name)
			continue
		}
		printSecret(sum, f)
		config, err := registry.ParseSecret(f.Type, f.Content)
		switch {
		case err != nil:
			out.Print = fmt.Sprintf("%x", sum.Sum(nil))
			return out, fmt.Errorf("imagePullSecrets: Secret %s: %w", ref.Name, err)
		case config == nil:
			out.Unused = append(out.Unused, fmt.Sprintf("Secret %s, of the type %s, has no credentials of a registry", ref.Name, cmp.Or(f.Type, "Opaque")))
		}
		configs = append(configs, config)
	}
	if len(configs)+len(out.Unused) > 0 {
		out.Print = fmt.Sprintf("%x", sum.Sum(nil))
	}
	out.Keyring = registry.NewKeyring(configs...)
	return out, nil
}

// printSecret writes what makes the content of a Secret another one.
func printSecret(to io.Writer, f records.Files) {
	fmt.Fprintf(to, "%q %q\n", f.Name, f.Type)
	for _, key := range slices.Sorted(maps.Keys(f.Content)) {
		fmt.Fprintf(to, "%q %x\n", key, sha256.Sum256(f.Content[key]))
	}
}

// UnsentPullSecret is the sentence about the first Secret of the life's imagePullSecrets of which
// the server has not said whether it is there; "": it has of all.
func UnsentPullSecret(l *records.Life, find Lookup) string {
	return UnsentSecret(l.Member.ID.Namespace, l.Template.Spec.ImagePullSecrets, find)
}

// UnsentSecret is UnsentPullSecret for these Secrets of a namespace.
func UnsentSecret(ns spec.Namespace, secrets []spec.PullSecret, find Lookup) string {
	for _, ref := range secrets {
		if _, known := find(KindSecret, ns, ref.Name); ref.Name != "" && !known {
			return fmt.Sprintf("the server has not sent Secret %s of imagePullSecrets yet", ref.Name)
		}
	}
	return ""
}

// Explain adds to the error of a pull by that policy which Secrets had no credentials for it.
func (c Credentials) Explain(err error, policy string) error {
	if text := c.UnusedText(); text != "" && policy != spec.PullNever && (errors.Is(err, runtime.ErrImagePull) || errors.Is(err, runtime.ErrImageMissing)) {
		return fmt.Errorf("%w; of imagePullSecrets, %s", err, text)
	}
	return err
}

// UnusedText joins the sentences about Secrets without credentials; "": each has some.
func (c Credentials) UnusedText() string { return strings.Join(c.Unused, ", and ") }

// isPullSecret reports that the life's imagePullSecrets name an object for which of is true.
func isPullSecret(l *records.Life, of func(FileSource) bool) bool {
	for _, ref := range l.Template.Spec.ImagePullSecrets {
		if of(FileSource{KindSecret, l.Member.ID.Namespace, ref.Name}) {
			return true
		}
	}
	return false
}
