package e2e

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// differsSet has members 1 and 4 differ; ROLE is what they are.
const differsSet = `
apiVersion: stead/v1
kind: StatefulSet
metadata: {name: differs}
spec:
  replicas: REPLICAS
  selector: {matchLabels: {app: differs}}
  members:
  - {ordinals: [1, 4], env: [{name: ROLE, value: "THEIRS"}, {name: OWN, value: "$(ROLE) of it"}], resources: {limits: {memory: 64Mi}}}
  template:
    metadata: {labels: {app: differs}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: main
        image: stead.local/tool:1
        command: [/box, command, wait]
        env: [{name: ROLE, value: voter}]
        resources: {limits: {memory: 32Mi}}
`

func differing(replicas, theirs string) string {
	return strings.NewReplacer("REPLICAS", replicas, "THEIRS", theirs).Replace(differsSet)
}

// A change of what one member has of its own restarts that one alone, with its variables and memory; to go back is an update like
// others, and a member that comes has what its ordinal says. The agent may be of the release before: it is told one template a life.
func TestAMemberThatDiffersIsRestartedAlone(t *testing.T) {
	t.Parallel()
	for name, agent := range map[string]func(*testing.T) string{
		"by its own agent":                       func(*testing.T) string { return "" },
		"by an agent of the release before this": func(t *testing.T) string { return previousStead(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := agent(t)
			l := newLab(t)
			l.startServer()
			l.program = before
			l.startAgent()
			l.program = ""
			l.stead("image", "load", l.toolArchive())
			l.apply("differs", differing("3", "witness"), "--wait", "--timeout", patience)
			l.roles("voter", "witness", "voter")
			l.assertLimits("differs-0", "33554432")
			l.assertLimits("differs-1", "67108864")

			lives := l.livesOf(3)
			l.apply("differs", differing("3", "arbiter"), "--wait", "--timeout", patience)
			l.stead("rollout", "status", "differs", "--timeout", patience)
			l.roles("voter", "arbiter", "voter")
			l.onlyRestarted(lives, 1)

			lives = l.livesOf(3)
			l.stead("rollout", "undo", "differs")
			l.stead("rollout", "status", "differs", "--timeout", patience)
			l.roles("voter", "witness", "voter")
			l.onlyRestarted(lives, 1)

			lives = l.livesOf(3)
			l.stead("scale", "differs", "--replicas", "5")
			l.waitReady("differs-4", nil)
			l.roles("voter", "witness", "voter", "voter", "witness")
			l.assertLimits("differs-3", "33554432")
			l.assertLimits("differs-4", "67108864")
			l.onlyRestarted(lives)
		})
	}
}

func (l *Lab) livesOf(n int) (lives []member) {
	l.t.Helper()
	for ordinal := range n {
		lives = append(lives, l.mustMember(fmt.Sprint("differs-", ordinal)))
	}
	return lives
}

// onlyRestarted: of these lives, those of the ordinals are over, and no other; all members are of one revision.
func (l *Lab) onlyRestarted(before []member, ordinals ...int) {
	l.t.Helper()
	revisions := map[string]bool{}
	for ordinal, was := range before {
		now := l.mustMember(was.Status.Name)
		revisions[now.Status.Revision] = true
		if restarted := now.Status.Token != was.Status.Token; restarted != slices.Contains(ordinals, ordinal) || now.Status.Restarts != 0 {
			l.t.Errorf("%s was restarted: %v; %+v", was.Status.Name, restarted, now.Status)
		}
	}
	if len(revisions) != 1 {
		l.t.Errorf("the members are of the revisions %v", revisions)
	}
}

// roles are the variable ROLE of each member, as its process has it, and OWN of those that differ.
func (l *Lab) roles(want ...string) {
	l.t.Helper()
	for ordinal, role := range want {
		name := fmt.Sprint("differs-", ordinal)
		l.eventually(time.Minute, name+" is "+role, func() error {
			for _, pid := range l.pidsOf(name) {
				env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
				if err != nil {
					continue
				}
				list := strings.Split(string(env), "\x00")
				if slices.Contains(list, "ROLE="+role) && slices.Contains(list, "OWN="+role+" of it") == (role != "voter") {
					return nil
				}
			}
			return fmt.Errorf("no process of it has ROLE=%s", role)
		})
	}
}
