package containerdrt

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/spec"
)

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
)

// containerID is the daemon's id of a container. Dots cannot stand in the parts, so
// it is unique; what is too long or no valid id (a--b) is hashed.
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
	}
}

// record is what the labels say. ok is false for a container that is not ours.
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
