package proto

import "fmt"

// The kinds of objects, as requests name them.
const (
	KindSet       = "set"
	KindMember    = "member"
	KindVolume    = "volume"
	KindNode      = "node"
	KindService   = "service"
	KindBudget    = "budget"
	KindConfigMap = "configmap"
	KindSecret    = "secret"
	KindEvent     = "event"
	KindRevision  = "revision"
)

// The values of DeleteRequest.cascade; empty is CascadeBackground.
const (
	CascadeBackground = "background"
	CascadeForeground = "foreground"
	CascadeOrphan     = "orphan"
)

// CheckCascade returns an error unless cascade is one of these values and fits the kind:
// only a set has members that can be orphaned.
func CheckCascade(cascade, kind string) error {
	switch cascade {
	case "", CascadeBackground, CascadeForeground:
		return nil
	case CascadeOrphan:
		if kind == KindSet {
			return nil
		}
		return fmt.Errorf("orphan is for sets; a %s has no members", kind)
	}
	return fmt.Errorf("invalid value %q; use %s, %s or %s", cascade, CascadeBackground, CascadeForeground, CascadeOrphan)
}
