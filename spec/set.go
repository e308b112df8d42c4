package spec

import (
	"slices"
	"time"

	"github.com/stead-project/stead/spec/changes"
	"github.com/stead-project/stead/spec/scalar"
)

// StatefulSet is the manifest of a set: apps/v1, or stead/v1 (a superset).
type StatefulSet struct {
	APIVersion string     `json:"apiVersion"`
	Kind       string     `json:"kind"`
	Metadata   ObjectMeta `json:"metadata"`
	Spec       SetSpec    `json:"spec"`
	Status     any        `json:"status,omitempty" stead:"ignored"`
}

// ObjectMeta names an object.
type ObjectMeta struct {
	Name        string            `json:"name,omitempty"`
	Namespace   Namespace         `json:"namespace,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`

	GenerateName    string `json:"generateName,omitempty" stead:"later,zero"`
	Finalizers      any    `json:"finalizers,omitempty" stead:"later,zero"`
	OwnerReferences any    `json:"ownerReferences,omitempty" stead:"later,zero"`

	CreationTimestamp          any `json:"creationTimestamp,omitempty" stead:"ignored"`
	DeletionTimestamp          any `json:"deletionTimestamp,omitempty" stead:"ignored"`
	DeletionGracePeriodSeconds any `json:"deletionGracePeriodSeconds,omitempty" stead:"ignored"`
	// Generation and UID of a set, as get shows them: if both are given and the set was
	// changed since, apply refuses. Elsewhere, or of another cluster, they say nothing.
	Generation      any `json:"generation,omitempty" stead:"ignored"`
	ManagedFields   any `json:"managedFields,omitempty" stead:"ignored"`
	ResourceVersion any `json:"resourceVersion,omitempty" stead:"ignored"`
	SelfLink        any `json:"selfLink,omitempty" stead:"ignored"`
	UID             any `json:"uid,omitempty" stead:"ignored"`
}

// SetSpec is what a set should be. Defaults are SEMANTICS K2, filled by Default.
type SetSpec struct {
	// Replicas is the number of members, 0 to 10,000. nil in a manifest keeps the
	// present number (1 at creation); never nil in a stored set.
	Replicas *int32 `json:"replicas,omitempty"`
	// Selector must match the template's labels. Immutable, but for a set that is adopted.
	Selector *LabelSelector `json:"selector,omitempty"`
	Template Template       `json:"template"`
	// ServiceName is the governing service: the DNS name under which the members
	// are found. Default: the set's name. Changes only with --rename-service.
	ServiceName          string          `json:"serviceName,omitempty"`
	VolumeClaimTemplates []ClaimTemplate `json:"volumeClaimTemplates,omitempty"`
	// PodManagementPolicy is OrderedReady (default) or Parallel.
	PodManagementPolicy ManagementPolicy `json:"podManagementPolicy,omitempty"`
	UpdateStrategy      UpdateStrategy   `json:"updateStrategy,omitempty"`
	// RevisionHistoryLimit counts revisions kept beside the live ones; default 10.
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`
	// MinReadySeconds is how long a member must be ready to count as available; default 0.
	MinReadySeconds int32            `json:"minReadySeconds,omitempty"`
	Ordinals        *Ordinals        `json:"ordinals,omitempty"`
	Retention       *RetentionPolicy `json:"persistentVolumeClaimRetentionPolicy,omitempty"`

	NodeLoss *NodeLoss `json:"nodeLoss,omitempty" stead:"only"`
	// ProgressDeadlineSeconds is how long a rollout may go on without a member that
	// becomes available; then the set is Stalled. The time that a startup probe allows
	// comes on top. More than minReadySeconds; default 600, or minReadySeconds + 600.
	ProgressDeadlineSeconds *int32 `json:"progressDeadlineSeconds,omitempty" stead:"only"`
	// Disruption bounds how many members updates and restarts may take down.
	Disruption *Disruption `json:"disruption,omitempty" stead:"only"`
	// Busy bounds how long members that say that they are busy are waited for.
	Busy *Busy `json:"busy,omitempty" stead:"only"`
	// Members are differences of members from the template, by their ordinals. They are part of a revision; a change
	// restarts the members of which it changes what they run.
	Members        Differences `json:"members,omitempty" stead:"only"`
	OnConfigChange any         `json:"onConfigChange,omitempty" stead:"only,later"`
	// Decommission is run in a member before it leaves the set for good, and holds its stop; absent: it stops at once.
	Decommission *Decommission `json:"decommission,omitempty" stead:"only"`
	// Forget is run in a member that is ready, the one with the lowest ordinal, after another has left for good.
	Forget *MemberHook `json:"forget,omitempty" stead:"only"`
	// Jobs are run once each in the member that is ready with the lowest ordinal: in this order, one at a time.
	Jobs []Job `json:"jobs,omitempty" stead:"only"`
}

// SteadOnly reports whether a field is set that Kubernetes does not have.
func (s *SetSpec) SteadOnly() bool {
	u := s.UpdateStrategy
	reclaim := slices.ContainsFunc(s.VolumeClaimTemplates, func(c ClaimTemplate) bool { return c.Reclaim != nil })
	leads := false
	for c := range s.Template.Spec.All() {
		leads = leads || c.StepDown != nil || c.LeaderProbe != nil
	}
	return leads || reclaim || s.Decommission != nil || s.Forget != nil || s.Jobs != nil || s.Members != nil || s.NodeLoss != nil || s.ProgressDeadlineSeconds != nil || s.Disruption != nil || s.Busy != nil ||
		s.Ordinals != nil && s.Ordinals.Reserved != nil || u.ReplaceBroken != "" || u.Metadata != "" || u.InPlace != nil ||
		u.RollingUpdate != nil && (u.RollingUpdate.OnFailure != "" || u.RollingUpdate.Order != "")
}

// minDeadline is the default of ProgressDeadlineSeconds for members that count as
// available as soon as they are ready.
const minDeadline = 600

// ProgressDeadline is ProgressDeadlineSeconds or its default.
func (s *SetSpec) ProgressDeadline() time.Duration {
	if s.ProgressDeadlineSeconds != nil {
		return time.Duration(*s.ProgressDeadlineSeconds) * time.Second
	}
	return time.Duration(int64(s.MinReadySeconds)+minDeadline) * time.Second
}

// ManagementPolicy says whether members are created and stopped in order.
type ManagementPolicy string

// The values of ManagementPolicy.
const (
	OrderedReady ManagementPolicy = "OrderedReady"
	Parallel     ManagementPolicy = "Parallel"
)

// UpdateStrategy says how members reach a new template.
type UpdateStrategy struct {
	// Type is RollingUpdate (default), OnDelete (members move on when they are
	// restarted) or Recreate (all stop, then all start).
	Type          string         `json:"type,omitempty"`
	RollingUpdate *RollingUpdate `json:"rollingUpdate,omitempty"`
	// ReplaceBroken is Always (default) or Never: whether a member that is out of date, and broken
	// or not ready for too long, is replaced out of turn.
	ReplaceBroken string `json:"replaceBroken,omitempty" stead:"only"`
	// Metadata is Restart (default) or Live: whether a change of the template's annotations
	// restarts members. Labels are always live. What a variable shows never is.
	Metadata string `json:"metadata,omitempty" stead:"only"`
	// InPlace lists what an update changes in a life without a new one, where nothing else changes: Resources, Image. Default: nothing.
	// Only with RollingUpdate.
	InPlace []changes.Kind `json:"inPlace,omitempty" stead:"only"`
}

// The values of UpdateStrategy.Type.
const (
	RollingUpdateStrategy = "RollingUpdate"
	OnDeleteStrategy      = "OnDelete"
	RecreateStrategy      = "Recreate"
)

// The values of UpdateStrategy.ReplaceBroken.
const (
	ReplaceBrokenAlways = "Always"
	ReplaceBrokenNever  = "Never"
)

// The values of UpdateStrategy.Metadata.
const (
	MetadataRestart = "Restart"
	MetadataLive    = "Live"
)

// RollingUpdate bounds a rolling update.
type RollingUpdate struct {
	// Partition is how many of the lowest ordinals keep the current revision; default 0.
	Partition *int32 `json:"partition,omitempty"`
	// MaxUnavailable is a number or percent (rounded down, at least 1); default 1.
	MaxUnavailable *scalar.IntOrPercent `json:"maxUnavailable,omitempty"`
	// OnFailure is Halt (default) or Rollback: what a rollout that is Stalled does.
	// Rollback goes to the last completed revision, once, until the template changes.
	OnFailure string `json:"onFailure,omitempty" stead:"only"`
	// Order is Ordinal (default: the highest first) or LeaderLast: the member that leads goes down after the others,
	// in updates, restarts, drains and moves. Surplus members leave highest first in any case.
	Order string `json:"order,omitempty" stead:"only"`
}

// The values of RollingUpdate.Order.
const (
	OrderOrdinal    = "Ordinal"
	OrderLeaderLast = "LeaderLast"
)

// The values of RollingUpdate.OnFailure.
const (
	OnFailureHalt     = "Halt"
	OnFailureRollback = "Rollback"
)

// RetentionPolicy says what becomes of volumes: Retain (default) or Delete.
type RetentionPolicy struct {
	WhenScaled  Retention `json:"whenScaled,omitempty"`
	WhenDeleted Retention `json:"whenDeleted,omitempty"`
}

// Retention is Retain or Delete.
type Retention string

// The values of Retention.
const (
	Retain Retention = "Retain"
	Delete Retention = "Delete"
)

// NodeLoss says what becomes of members whose node fell silent (SAFETY S6). A change
// counts from the next life of each member.
type NodeLoss struct {
	// Policy is Hold (default: they wait for their node, or for a person's word that it is
	// off) or Replace: their lives are guarded, end by themselves, and begin elsewhere.
	Policy string `json:"policy,omitempty"`
	// After is the bound of a guarded life: it ends by itself when its node has reached no
	// server for so long, whatever the reason. At least 10s; default 5m. Only for Replace.
	After *scalar.Duration `json:"after,omitempty"`
}

// The values of NodeLoss.Policy, and the default of After.
const (
	NodeLossHold    = "Hold"
	NodeLossReplace = "Replace"

	defaultBound = 5 * time.Minute
)

// Bound is that of lives which begin now; 0: they are not guarded.
func (s *SetSpec) Bound() time.Duration {
	switch l := s.NodeLoss; {
	case l == nil || l.Policy != NodeLossReplace:
		return 0
	case l.After == nil:
		return defaultBound
	default:
		return l.After.Duration
	}
}

// Disruption is the set's disruption floor, as a PodDisruptionBudget has it: one of
// the two is given. Percentages are rounded up.
type Disruption struct {
	// MinAvailable is how many members must stay available.
	MinAvailable *scalar.IntOrPercent `json:"minAvailable,omitempty"`
	// MaxUnavailable is how many members may be unavailable.
	MaxUnavailable *scalar.IntOrPercent `json:"maxUnavailable,omitempty"`
}

// Busy bounds how long a member may hold up planned stops by the file /run/stead/self/busy.
type Busy struct {
	// MaxSeconds is for how long a member that is busy is not stopped for an update, a restart, a drain, a move or a
	// scale-down; 60 to 86400, counted in whole minutes; default 3600.
	MaxSeconds *int32 `json:"maxSeconds,omitempty"`
}

const defaultBusy = time.Hour

// BusyBound is Busy.MaxSeconds or its default.
func (s *SetSpec) BusyBound() time.Duration {
	if s.Busy == nil || s.Busy.MaxSeconds == nil {
		return defaultBusy
	}
	return time.Duration(*s.Busy.MaxSeconds) * time.Second
}

// Floor is how many of so many members must stay available.
func (d *Disruption) Floor(members int) int {
	switch {
	case d.MinAvailable != nil:
		return d.MinAvailable.ScaledUp(members)
	case d.MaxUnavailable != nil:
		return max(0, members-d.MaxUnavailable.ScaledUp(members))
	}
	return 0
}

// LabelSelector selects by labels; all of it must match.
type LabelSelector struct {
	MatchLabels      map[string]string     `json:"matchLabels,omitempty"`
	MatchExpressions []SelectorRequirement `json:"matchExpressions,omitempty"`
}

// SelectorRequirement is one expression: In, NotIn, Exists, DoesNotExist.
type SelectorRequirement struct {
	Key      string   `json:"key"`
	Operator string   `json:"operator"`
	Values   []string `json:"values,omitempty"`
}
