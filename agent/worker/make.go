package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/stead-project/stead/agent/files"
	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/agent/step"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
)

// The size at which a log is rotated, and how many stay: Kubernetes' numbers.
const (
	logBytes = 10 << 20
	logFiles = 5
)

func (w *actor) create(ctx context.Context, c *spec.Container, ctr *container) error {
	dir, err := w.c.Files.MakeLogDir(w.id, c.Name)
	if err != nil {
		return err
	}
	log := runtime.Log{Dir: dir, FileBytes: logBytes, Files: logFiles}
	if w.life.Member.Bound > 0 {
		log.Guard = w.c.Guard.Record(w.id)
	}
	subPaths := map[int]string{}
	mounted, err := files.SubPaths(w.life, c, w.c.Node, w.c.Find, w.prepared.dirs)
	if err != nil {
		return err
	}
	for _, s := range mounted {
		path, err := w.c.Volumes.SubPath(ctx, s)
		if err != nil {
			return err
		}
		subPaths[s.Index] = path
	}
	desc, err := files.Build(w.life, c, w.c.Node, w.c.Find, files.Parts{
		Attempt: ctr.Attempt, Place: files.At(w.c.RunDir, w.id), Volumes: w.prepared.dirs, SubPaths: subPaths, Log: log,
	})
	if err != nil {
		return err
	}
	desc.Labels = files.Labels(w.life)
	w.left.containers = true
	err = w.c.Runtime.Create(ctx, desc)
	switch {
	case errors.Is(err, runtime.ErrExists):
		w.dirty = true
		return nil
	case errors.Is(err, runtime.ErrImageMissing), errors.Is(err, runtime.ErrNotFound):
		ctr.image = false
		w.prepared.sandbox = false // its own process may have ended
		return err
	case err != nil:
		return err
	}
	ctr.seen, ctr.broken = step.Created, false
	ctr.Started, ctr.Ready, ctr.Led = false, false, records.Claim{} // also when somebody took away one that was ready
	if ctr.Hooks != (HooksDone{}) {
		ctr.Hooks = HooksDone{}
		w.saveState()
	}
	ctr.Sources = files.Fingerprint(w.life, w.c.Node, w.c.Find)
	return nil
}

// start starts a created container. One that cannot be started is like one that
// ended: it is made again after its back-off.
func (w *actor) start(ctx context.Context, id runtime.ContainerID, ctr *container) error {
	if err := w.writeVolumeNew(); err != nil {
		return err
	}
	if err := w.mayStart(); err != nil {
		return err
	}
	err := w.c.Runtime.Start(ctx, id)
	w.dirty = true
	if err == nil {
		ctr.startedByUs = true
		w.log.Info("container started", "token", w.token)
		return nil
	}
	if errors.Is(err, runtime.ErrUnavailable) || ctx.Err() != nil {
		return err // what became of it will be seen
	}
	ctr.broken = true
	w.countEnd(ctr, ending{causes.StartError, err.Error()}, runtime.Exit{})
	ctr.Cause = causes.StartError
	return nil
}

func (w *actor) ensureVolumes(ctx context.Context) error {
	w.left.scratch = true
	dirs := map[string]string{}
	group := w.volumeGroup()
	defer w.reportGiving(group)()
	for _, v := range w.life.Member.Volumes {
		if v.Object {
			continue
		}
		_, fresh := w.life.FreshVolumes[v.Claim]
		dir, err := w.c.Volumes.Ensure(ctx, w.id, v, fresh && !w.state.ReadyOnce, group)
		if err != nil {
			return fmt.Errorf("volume %s: %w", v.Claim, err)
		}
		dirs[string(v.Claim)] = dir
	}
	if err := w.ensureClaims(ctx, dirs, group); err != nil {
		return err
	}
	for _, v := range w.life.Template.Spec.Volumes {
		if _, claimed := dirs[v.Name]; claimed || v.EmptyDir == nil && v.HostPath == nil {
			continue
		}
		dir, err := w.ownVolume(ctx, v)
		if err != nil {
			return fmt.Errorf("volume %s: %w", v.Name, err)
		}
		dirs[v.Name] = dir
	}
	w.prepared.volumes, w.prepared.dirs = true, dirs
	if group != nil && !w.state.Given {
		w.state.Given = true
		w.saveState()
	}
	return nil
}

// ownVolume makes an emptyDir, or finds a path of the host, for this life.
func (w *actor) ownVolume(ctx context.Context, v spec.VolumeMedia) (string, error) {
	if h := v.HostPath; h != nil {
		p := runtime.HostPath{ID: w.id, Name: v.Name, Path: h.Path}
		if h.Type != nil {
			p.Type = *h.Type
		}
		return w.c.Volumes.HostPath(ctx, p)
	}
	s := runtime.Scratch{ID: w.id, Token: w.token, Name: v.Name, FSGroup: w.fsGroup()}
	files.Medium(&s, &w.life.Template.Spec, v.EmptyDir)
	return w.c.Volumes.Scratch(ctx, s)
}

// ensureClaims adds to dirs the directories of volumes that belong to PersistentVolumeClaims. That the
// life has them is noted before: they are not given up while it is open (SAFETY S22).
func (w *actor) ensureClaims(ctx context.Context, dirs map[string]string, fsGroup *runtime.Group) error {
	life := spec.LifeID{ID: w.id, Token: w.token}
	for i := range w.life.Template.Spec.Volumes {
		m := &w.life.Template.Spec.Volumes[i]
		if _, claimed := dirs[m.Name]; claimed || m.PersistentVolumeClaim == nil {
			continue
		}
		claim := spec.ClaimName(m.PersistentVolumeClaim.ClaimName)
		at := slices.IndexFunc(w.life.Member.Volumes, func(v records.MemberVolume) bool { return v.Object && v.Claim == claim })
		if at < 0 {
			return fmt.Errorf("volume %s: the life was assigned without the volume of PersistentVolumeClaim %s", m.Name, claim)
		}
		v := w.life.Member.Volumes[at]
		if err := w.c.Volumes.NoteUser(ctx, v.ID, life); err != nil {
			return fmt.Errorf("volume %s: %w", m.Name, err)
		}
		group := fsGroup
		if m.PersistentVolumeClaim.ReadOnly {
			group = nil // as in Kubernetes
		}
		fresh := slices.Contains(w.life.UnusedClaims, claim) && !w.state.ReadyOnce
		dir, err := w.c.Volumes.Ensure(ctx, w.id, v, fresh, group)
		if err != nil {
			return fmt.Errorf("volume %s: %w", m.Name, err)
		}
		dirs[m.Name] = dir
	}
	return nil
}

// volumeGroup is the group to which volumes are given; nil: none. As in Kubernetes, whole trees are, unless the
// policy is OnRootMismatch; but once in a life, not when a container of it starts again.
func (w *actor) volumeGroup() *runtime.Group {
	id := w.fsGroup()
	if id == nil {
		return nil
	}
	always := w.life.Template.Spec.SecurityContext.GivesAlways()
	return &runtime.Group{ID: *id, Whole: always && !w.state.Given, Progress: &runtime.GroupProgress{}}
}

// fsGroup is the group of the life's files; nil: any.
func (w *actor) fsGroup() *int64 {
	if sc := w.life.Template.Spec.SecurityContext; sc != nil {
		return sc.FSGroup
	}
	return nil
}

func (w *actor) ensureSandbox(ctx context.Context) error {
	w.left.sandbox = true
	if name := w.life.Hostname(); len(name) > records.MaxHostname {
		return fmt.Errorf("%s has %d characters, the maximum of a hostname is %d: remove setHostnameAsFQDN, or shorten the name of the set, its serviceName or its namespace",
			name, len(name), records.MaxHostname)
	}
	onHost := w.life.Template.Spec.HostNetwork
	if onHost && !w.life.Member.HostNetwork {
		return errors.New("its template has hostNetwork, and a server of an earlier version assigned it without its host's address: upgrade the servers, then restart the member")
	}
	shared := w.life.Template.Spec.ShareProcessNamespace
	box, err := w.c.Runtime.EnsureSandbox(ctx, runtime.Sandbox{
		ID: w.id, Token: w.token, Hostname: w.life.Hostname(), SharedPIDs: shared != nil && *shared, HostNetwork: onHost,
	})
	if err != nil {
		return err
	}
	w.prepared.sandbox, w.prepared.netns = true, box.NetNS
	return nil
}

// attach gives the life its network. In that of the host it has one.
func (w *actor) attach(ctx context.Context) error {
	if w.life.Template.Spec.HostNetwork {
		w.prepared.network = true
		return nil
	}
	w.left.link = true
	err := w.c.Network.Attach(ctx, w.id, w.prepared.netns, w.life.Member.Address, w.life.Template.Spec.HostPorts()...)
	w.prepared.network = err == nil
	return err
}

// writeFiles shows the member what is known now.
func (w *actor) writeFiles() error {
	w.filesWritten = w.c.Now()
	if err := w.c.Files.ShowMember(w.life, w.c.Node); err != nil {
		return err
	}
	if err := w.c.Sets.Follow(w.life); err != nil {
		return err
	}
	if err := w.writeMedia(); err != nil {
		return err
	}
	w.prepared.files = true
	return nil
}

// writeVolumeNew shows a container that is about to start which volumes are new, as it is
// known now: since the one before it a peer may have been ready (SAFETY S19). Containers that
// run keep it as they found it; sidecars do not. Without a probe a member is ready, and its volume old,
// before its program has read a line.
func (w *actor) writeVolumeNew() error {
	switch {
	case w.state.ReadyOnce:
		return w.c.Files.ShowVolumeNew(w.id, nil)
	case w.anyMainStarted():
		return nil
	}
	return w.c.Files.ShowVolumeNew(w.id, files.VolumeNew(w.life))
}

// missing is the sentence about what containers need and the server has not sent. Files
// that this life has got already are not needed again: a container that is restarted in
// place after its ConfigMap was deleted continues with them, as in Kubernetes. Variables
// are, for they are read at each start.
func (w *observer) missing() string {
	if !w.c.Sets.IsKnown(w.id, w.wake.Notify) {
		return "the server has not sent the snapshot of the set yet"
	}
	needed := func(name string) bool { return !w.isDone(name) }
	if text := files.MissingEnv(w.life, w.c.Node, w.c.Find, needed); text != "" || w.state.Media {
		return text
	}
	if text := files.MissingMedia(w.life, w.c.Find); text != "" {
		return text
	}
	return files.UnsentPullSecret(w.life, w.c.Find)
}

// writeMedia shows the member the files of its volumes as they are now.
func (w *actor) writeMedia() error {
	media, err := files.MediaOf(w.life, w.c.Node, w.c.Find)
	w.sourceGone = ""
	if _, missing := errors.AsType[*files.MissingError](err); missing && w.state.Media {
		w.sourceGone = err.Error() + "; the member keeps the files that it has"
	} else if err != nil {
		return err
	}
	for _, m := range media {
		if err := w.c.Files.ShowMedia(w.id, m, w.fsGroup()); err != nil {
			return err
		}
	}
	if !w.state.Media {
		w.state.Media = true
		w.saveState()
	}
	return nil
}

// tryRepaired ends the back-off of containers that failed with other files or variables
// than those that are known now: what was applied since may be the repair.
func (w *observer) tryRepaired() {
	if w.life == nil {
		return
	}
	now := w.c.Now()
	for _, ctr := range w.containers {
		if !ctr.due.After(now) {
			continue
		}
		if print := files.Fingerprint(w.life, w.c.Node, w.c.Find); print != "" && print != ctr.Sources {
			ctr.due, ctr.Streak = now, 0
			w.prepared.files, w.rewriteFiles = false, time.Time{}
			w.log.Info("start retried at once: ConfigMaps or Secrets changed", "token", w.token)
		}
	}
}
