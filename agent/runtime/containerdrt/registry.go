package containerdrt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/containerd/containerd/v2/core/remotes"
	"github.com/containerd/containerd/v2/core/remotes/docker"
	"github.com/containerd/containerd/v2/core/remotes/docker/config"
	"github.com/containerd/log"

	"github.com/stead-project/stead/agent/registry"
)

// newResolver asks the registries and mirrors that hosts.toml below dir names, with c if they ask
// for credentials.
func newResolver(ctx context.Context, dir string, c registry.Login) remotes.Resolver {
	return docker.NewResolver(docker.ResolverOptions{Hosts: registryHosts(ctx, dir, c)})
}

// registryHosts finds where a registry is asked. As with Kubernetes on containerd, a mirror gets the
// credentials of its registry.
func registryHosts(ctx context.Context, dir string, c registry.Login) docker.RegistryHosts {
	options := config.HostOptions{
		HostDir:     config.HostDirFromRoot(dir),
		Credentials: func(string) (user, password string, err error) { return c.User, c.Password, nil },
	}
	return func(host string) ([]docker.RegistryHost, error) {
		var said bytes.Buffer
		found, err := config.ConfigureHosts(quiet(ctx, &said), options)(host)
		if err == nil && said.Len() > 0 { // else a mirror with a mistake would be passed over in silence
			err = errors.New(strings.TrimSpace(said.String()))
		}
		if err != nil {
			return nil, &hostsError{fmt.Errorf("hosts.toml of %s below %s: %w", host, dir, err)}
		}
		return found, nil
	}
}

// hostsError is a mistake in a hosts.toml, or in what it names.
type hostsError struct{ error }

func (e *hostsError) Unwrap() error { return e.error }

// hostsFile is where the configuration of a registry is, or would be.
func hostsFile(dir, image string) string {
	return filepath.Join(dir, registry.Host(image), "hosts.toml")
}

// quiet has the library write its errors alone, and to w: by default it logs each request, with
// the names of users in some.
func quiet(ctx context.Context, w io.Writer) context.Context {
	entry := *log.L
	entry.Logger = newLike(log.L.Logger)
	entry.Logger.Out, entry.Logger.Formatter, entry.Logger.Level = w, plainFormat{}, log.ErrorLevel
	return log.WithLogger(ctx, &entry)
}

// newLike makes a value of the type of another, which is of a package that is not ours to import.
func newLike[T any](*T) *T { return new(T) }

// plainFormat writes an entry without its time and level.
type plainFormat struct{}

// Format implements the formatter of the library's logger.
func (plainFormat) Format(e *log.Entry) ([]byte, error) {
	if err, ok := e.Data["error"]; ok {
		return fmt.Appendf(nil, "%s: %v\n", e.Message, err), nil
	}
	return fmt.Appendln(nil, e.Message), nil
}
