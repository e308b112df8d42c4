package containerdrt

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	tasks "github.com/containerd/containerd/api/services/tasks/v1"
	tasktypes "github.com/containerd/containerd/api/types/task"
	containerd "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/containers"
	"github.com/containerd/errdefs"
	"github.com/containerd/errdefs/pkg/errgrpc"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/internal/wrap"
	"github.com/stead-project/stead/spec"
)

// Status looks at one container.
func (r *lifecycle) Status(ctx context.Context, id runtime.ContainerID) (runtime.Status, error) {
	ctx, done := r.begin(ctx, lookTime)
	defer done()
	_, s, err := r.find(ctx, id)
	return s, r.translate(ctx, fmt.Sprintf("look at %s/%s", id.ID, id.Name), err)
}

// find returns the container with what is seen of it.
func (r *lifecycle) find(ctx context.Context, id runtime.ContainerID) (containerd.Container, runtime.Status, error) {
	c, err := r.client.LoadContainer(ctx, containerID(id))
	if err != nil {
		return nil, runtime.Status{}, err
	}
	rec, err := c.Info(ctx, containerd.WithoutRefreshedMetadata)
	if err != nil {
		return nil, runtime.Status{}, err
	}
	s, ours, err := r.statusOf(ctx, rec)
	if err == nil && (!ours || s.ID != id) {
		err = runtime.ErrForeign
	}
	return c, s, err
}

// List looks at all containers. Each task is asked for by itself: the daemon leaves
// one whose shim does not answer out of its list, and out must not look like gone.
func (r *lifecycle) List(ctx context.Context) ([]runtime.Status, error) {
	ctx, done := r.begin(ctx, actTime)
	defer done()
	all, err := r.client.ContainerService().List(ctx)
	if err != nil {
		return nil, r.translate(ctx, "list containers", err)
	}
	out := make([]runtime.Status, 0, len(all))
	for _, rec := range all {
		s, ours, err := r.statusOf(ctx, rec)
		if err != nil {
			return nil, r.translate(ctx, "list containers: "+rec.ID, err)
		}
		if ours {
			out = append(out, s)
		}
	}
	slices.SortFunc(out, func(a, b runtime.Status) int {
		return cmp.Or(a.ID.ID.Compare(b.ID.ID), cmp.Compare(a.ID.Name, b.ID.Name))
	})
	return out, nil
}

// statusOf puts together what the labels, the daemon and the cgroup say.
func (r *lifecycle) statusOf(ctx context.Context, rec containers.Container) (runtime.Status, bool, error) {
	s, ours, err := parseLabels(rec.Labels)
	if err != nil || !ours {
		return s, ours, err
	}
	s.Image = rec.Image
	s.StopSignal = stopSignal(rec.Labels)
	s.Resources = resourcesOf(rec.Labels)
	started := rec.Labels[labelStarted]
	if started != "" {
		s.Started, err = time.Parse(time.RFC3339Nano, started)
		if err != nil {
			return s, true, fmt.Errorf("label %s: %w", labelStarted, err)
		}
	}
	answer, err := r.client.TaskService().Get(ctx, &tasks.GetRequest{ContainerID: rec.ID})
	err = errgrpc.ToNative(err)
	if errdefs.IsNotFound(err) {
		s.State = runtime.Created
		if started != "" {
			s.State = runtime.Lost
		}
		return s, true, nil
	}
	if err != nil {
		return s, true, err
	}
	switch answer.Process.Status {
	case tasktypes.Status_CREATED:
		s.State, s.Loaded = runtime.Created, true
	case tasktypes.Status_RUNNING, tasktypes.Status_PAUSED, tasktypes.Status_PAUSING:
		s.State = runtime.Running
		s.Refused, err = r.cgroups.Refused(memberDir(s.ID.ID) + "/" + s.ID.Name)
	case tasktypes.Status_STOPPED:
		s.State = runtime.Exited
		s.Exit, err = r.exit(s.ID, int(answer.Process.ExitStatus), answer.Process.ExitedAt.AsTime())
		if err == nil {
			var empty bool
			empty, err = r.cgroups.Empty(memberDir(s.ID.ID) + "/" + s.ID.Name)
			s.Left = !empty
		}
	default: // the shim does not answer: only our own eyes are left
		err = r.statusByCgroup(&s)
	}
	return s, true, err
}

func (r *lifecycle) statusByCgroup(s *runtime.Status) error {
	empty, err := r.cgroups.Empty(memberDir(s.ID.ID) + "/" + s.ID.Name)
	s.State = runtime.Running
	if empty {
		s.State = runtime.Lost
	}
	return err
}

// exit completes an exit code. A kill for memory is one if the kernel counted it
// and the main process ended by SIGKILL.
func (r *lifecycle) exit(id runtime.ContainerID, code int, at time.Time) (runtime.Exit, error) {
	e := runtime.Exit{Code: code, At: at}
	if code != 128+int(syscall.SIGKILL) {
		return e, nil
	}
	kills, err := r.cgroups.OOMKills(memberDir(id.ID) + "/" + id.Name)
	e.OOM = kills > 0
	return e, err
}

// Wait blocks until the container's process has ended.
func (r *lifecycle) Wait(ctx context.Context, id runtime.ContainerID) (e runtime.Exit, err error) {
	defer wrap.Error(&err, "wait for %s/%s", id.ID, id.Name)
	for range 2 {
		s, err := r.Status(ctx, id)
		switch {
		case err != nil:
			return e, err
		case s.State == runtime.Created:
			return e, runtime.ErrNotRunning
		case s.State == runtime.Exited:
			return s.Exit, nil
		case s.State == runtime.Lost:
			return runtime.Exit{Unknown: true, At: time.Now()}, nil
		}
		e, err = r.waitTask(ctx, id)
		if !errors.Is(err, runtime.ErrNotFound) {
			return e, err
		}
		// The task went away between two looks: removed, or lost.
	}
	return e, fmt.Errorf("its task appears and disappears: %w", runtime.ErrUnavailable)
}

// waitTask waits for a running task, without a bound but the caller's.
func (r *lifecycle) waitTask(ctx context.Context, id runtime.ContainerID) (e runtime.Exit, err error) {
	ctx, done := r.begin(ctx, forever)
	defer done()
	defer r.translated(ctx, &err, "its task")
	answer, err := r.client.TaskService().Wait(ctx, &tasks.WaitRequest{ContainerID: containerID(id)})
	if err != nil {
		return e, errgrpc.ToNative(err)
	}
	return r.exit(id, int(answer.ExitStatus), answer.ExitedAt.AsTime())
}

// forever is longer than any process runs.
const forever = 100 * 365 * 24 * time.Hour

// maxID is containerd's limit of an id in bytes.
const maxID = 76

// validID is containerd's rule for ids and namespaces.
var validID = regexp.MustCompile(`^[A-Za-z0-9]+(?:[._-][A-Za-z0-9]+)*$`)

// Our labels of a container. The prefix is ours alone; all others are the caller's.
const (
	labelPrefix  = "rt.stead.dev/"
	labelSpace   = labelPrefix + "namespace"
	labelSet     = labelPrefix + "set"
	labelOrdinal = labelPrefix + "ordinal"
	labelName    = labelPrefix + "container"
	labelToken   = labelPrefix + "token"
	labelAttempt = labelPrefix + "attempt"
	labelLog     = labelPrefix + "log"     // logs.Config
	labelStarted = labelPrefix + "started" // set before the first try: no task then means Lost
	labelSize    = labelPrefix + "size"    // runtime.Resources
)

// containerID is the daemon's id of a container. Dots cannot stand in the parts, so
// it is unique; what is too long or not a valid id (a--b) is hashed.
func containerID(id runtime.ContainerID) string {
	s := memberDir(id.ID) + "." + id.Name
	if len(s) <= maxID && validID.MatchString(s) {
		return s
	}
	sum := sha256.Sum256([]byte(s))
	return "h." + hex.EncodeToString(sum[:])
}

// memberDir names an identity's directory of cgroups.
func memberDir(id spec.Identity) string { return string(id.Namespace) + "." + id.MemberName() }

func ourLabels(c runtime.Container) map[string]string {
	return map[string]string{
		labelSpace:   string(c.ID.ID.Namespace),
		labelSet:     string(c.ID.ID.Set),
		labelOrdinal: strconv.Itoa(c.ID.ID.Ordinal),
		labelName:    c.ID.Name,
		labelToken:   c.Token.String(),
		labelAttempt: strconv.Itoa(c.Attempt),
		labelSize:    sizeLabel(c.Resources),
	}
}

// parseLabels is what the labels say; false: the container is not ours.
func parseLabels(labels map[string]string) (runtime.Status, bool, error) {
	if labels[labelToken] == "" {
		return runtime.Status{}, false, nil
	}
	s := runtime.Status{Labels: map[string]string{}}
	ordinal, err1 := strconv.Atoi(labels[labelOrdinal])
	attempt, err2 := strconv.Atoi(labels[labelAttempt])
	token, err3 := spec.ParseToken(labels[labelToken])
	if err1 != nil || err2 != nil || err3 != nil {
		return s, true, fmt.Errorf("labels %v are damaged", labels)
	}
	s.ID = runtime.ContainerID{
		ID:   spec.Identity{Namespace: spec.Namespace(labels[labelSpace]), Set: spec.SetName(labels[labelSet]), Ordinal: ordinal},
		Name: labels[labelName],
	}
	s.Token, s.Attempt = token, attempt
	for k, v := range labels {
		if !strings.HasPrefix(k, labelPrefix) && !strings.Contains(k, "containerd.") {
			s.Labels[k] = v
		}
	}
	return s, true, nil
}
