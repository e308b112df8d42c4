package worker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stead-project/stead/agent/files"
	"github.com/stead-project/stead/agent/registry"
	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/agent/runtime/fakert"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
	"github.com/stead-project/stead/spec/scalar"
)

// keeper is a host whose registry wants one password.
type keeper struct {
	*fakert.Host
	password string
	mu       sync.Mutex
	asked    []string // for each pull what it was tried with
}

func (k *keeper) EnsureImage(ctx context.Context, p runtime.Pull) (runtime.Image, error) {
	if img, err := k.Host.EnsureImage(ctx, runtime.Pull{Image: p.Image, Policy: spec.PullNever}); err == nil {
		return img, nil
	}
	tried, err := p.Tried()
	if err != nil {
		return runtime.Image{}, fmt.Errorf("%w: %w", runtime.ErrImagePull, err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.asked = append(k.asked, passwords(tried))
	for _, c := range tried {
		if c.Password == k.password {
			k.AddImage(p.Image)
			return k.Host.EnsureImage(ctx, p)
		}
	}
	return runtime.Image{}, fmt.Errorf("%w: refused", runtime.ErrImagePull)
}

func passwords(tried []registry.Login) string {
	var out []string
	for _, c := range tried {
		out = append(out, c.Password)
	}
	return strings.Join(out, ",")
}

func (k *keeper) attempts() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return strings.Join(k.asked, " ")
}

// private makes a life of an image of reg.example, with imagePullSecrets.
func private(secrets ...string) func(*records.Life) {
	return func(l *records.Life) {
		l.Template.Spec.Containers[0].Image = "reg.example/db:1"
		for _, name := range secrets {
			l.Template.Spec.ImagePullSecrets = append(l.Template.Spec.ImagePullSecrets, spec.PullSecret{Name: name})
		}
	}
}

// sendSecret tells the node of a Secret; password "": there is none.
func (n *node) sendSecret(rev int64, name, password string) {
	f := records.Files{
		Kind: files.KindSecret, Namespace: "default", Name: name, Type: spec.SecretDockerConfigJSON, Sequence: spec.Sequence{Epoch: 1, Rev: rev},
		Content: map[string]scalar.Bytes{".dockerconfigjson": scalar.Bytes(`{"auths": {"reg.example": {"username": "u", "password": "` + password + `"}}}`)},
	}
	if password == "" {
		f.Absent, f.Content = true, nil
	}
	changed := n.book.Put(false, []records.Files{f})
	n.w.SourcesChanged(func(s files.FileSource) bool { return changed[s] })
}

func guarding(n *node) *keeper {
	k := &keeper{Host: n.host, password: "right"}
	n.change = func(c *Config) { c.Runtime = k }
	return k
}

func TestAnImageIsPulledWithTheSecretsOfItsTemplate(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		k := guarding(n)
		n.run()
		n.w.Tell(with(life(5, records.GoalRun), private("a", "b")))
		n.wantCause(causes.ConfigMissing, "the server has not sent Secret a of imagePullSecrets yet")
		n.sendSecret(1, "a", "wrong")
		n.sendSecret(2, "b", "right")
		n.wantReady()
		if got := k.attempts(); got != "wrong,right" {
			t.Errorf("tried with %q, want both in their order, at once", got)
		}
	})
}

// As in Kubernetes 1.33: a Secret that is not there is no reason to wait, and one that comes or
// changes is used at the next try, which need not wait for the back-off here.
func TestAPullIsTriedWithoutASecretThatIsNotThereAndAtOnceWhenItComes(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		k := guarding(n)
		n.run()
		n.w.Tell(with(life(5, records.GoalRun), private("a")))
		n.sendSecret(1, "a", "")
		n.wantCause(causes.ImagePull, "of imagePullSecrets, there is no Secret a")
		n.sendSecret(2, "other", "right")
		if got := k.attempts(); got != "" {
			t.Errorf("tried with %q, want once without anything", got)
		}
		n.sendSecret(3, "a", "wrong")
		if r := n.wantCause(causes.ImagePull, "refused"); strings.Contains(r.Message, "wrong") {
			t.Errorf("the message shows the password: %s", r.Message)
		}
		n.sendSecret(4, "a", "right")
		n.wantReady()
		if got := k.attempts(); got != " wrong right" {
			t.Errorf("tried with %q, want nothing, wrong, right", got)
		}
		n.wantStarts(tok(5), 1)
		n.sendSecret(5, "a", "wrong")
		time.Sleep(time.Minute)
		n.wantReady()
		n.wantStarts(tok(5), 1) // a running member has its image
	})
}

// IfNotPresent, as in Kubernetes 1.33: who has the image needs no credentials.
func TestAPresentImageNeedsNoCredentials(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		k := guarding(n)
		k.AddImage("reg.example/db:1")
		n.run()
		n.w.Tell(with(life(5, records.GoalRun), private("a")))
		n.sendSecret(1, "a", "")
		n.wantReady()
		if k.asked != nil {
			t.Errorf("it was pulled with %q", k.asked)
		}
	})
}

func TestASecretThatCannotBeReadFailsThePullUntilItIsCorrected(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		k := guarding(n)
		n.run()
		n.w.Tell(with(life(5, records.GoalRun), private("a")))
		bad := records.Files{
			Kind: files.KindSecret, Namespace: "default", Name: "a", Type: spec.SecretDockerConfigJSON, Sequence: spec.Sequence{Epoch: 1, Rev: 1},
			Content: map[string]scalar.Bytes{".dockerconfigjson": []byte("hunter2")},
		}
		n.book.Put(false, []records.Files{bad})
		n.w.SourcesChanged(func(files.FileSource) bool { return true })
		if r := n.wantCause(causes.ImagePull, "imagePullSecrets: Secret a"); strings.Contains(r.Message, "hunter2") {
			t.Error(r.Message)
		}
		n.sendSecret(2, "a", "right")
		n.wantReady()
		if got := k.attempts(); got != "right" {
			t.Errorf("tried with %q", got)
		}
	})
}

func TestTheKindOfAFailedPullStays(t *testing.T) {
	for _, kind := range []error{runtime.ErrImageMissing, runtime.ErrImagePull, runtime.ErrUnavailable} {
		scenario(t, func(t *testing.T, n *node) {
			n.run()
			n.host.OnPull(func(string, string) error { return kind })
			n.w.Tell(with(life(5, records.GoalRun), private("a")))
			n.sendSecret(1, "a", "")
			r := n.last()
			named := strings.Contains(r.Message, "there is no Secret a")
			if r.Cause != causeOf("EnsureImage", kind) || named == errors.Is(kind, runtime.ErrUnavailable) {
				t.Errorf("%v: got %s: %s", kind, r.Cause, r.Message)
			}
		})
	}
}

// slow pulls so many megabytes, one in each step.
type slow struct {
	*fakert.Host
	megabytes int
	step      time.Duration
}

func (s *slow) EnsureImage(ctx context.Context, p runtime.Pull) (runtime.Image, error) {
	const mb = 1_000_000
	p.Progress.Expect(int64(s.megabytes) * mb)
	for range s.megabytes {
		select {
		case <-ctx.Done():
			return runtime.Image{}, ctx.Err()
		case <-time.After(s.step):
			p.Progress.Fetched(mb)
		}
	}
	return s.Host.EnsureImage(ctx, p)
}

func TestALongPullIsReportedNowAndThen(t *testing.T) {
	for name, c := range map[string]struct {
		megabytes int
		step      time.Duration
		want      []string // parts of the reports' messages; none: no report says it
	}{
		"over soon":     {9, time.Second, nil},
		"half a minute": {32, 1100 * time.Millisecond, []string{"container db: pulling img:1: 9 of 32 MB", "18 of 32", "27 of 32"}},
		"a tenth is more than ten seconds": {10, 22900 * time.Millisecond, []string{
			"0 of 10", "1 of 10", "2 of 10", "3 of 10", "4 of 10", "5 of 10", "6 of 10", "7 of 10", "8 of 10", "9 of 10"}},
		"and more than a minute": {2, 129 * time.Second, []string{"0 of 2", "0 of 2", "1 of 2", "1 of 2", "1 of 2"}},
	} {
		t.Run(name, func(t *testing.T) {
			scenario(t, func(t *testing.T, n *node) {
				n.change = func(cfg *Config) { cfg.Runtime = &slow{n.host, c.megabytes, c.step} }
				n.run()
				n.w.Tell(with(life(5, records.GoalRun), func(l *records.Life) { l.Template.Spec.Containers[0].Image = "img:1" }))
				time.Sleep(time.Duration(c.megabytes)*c.step + time.Second)
				n.wantReady()
				var got []string
				last := time.Time{}
				for _, r := range n.all() {
					if r.Cause != causes.Pulling {
						continue
					}
					got = append(got, r.Message)
					if r.At.Sub(last) < progressTime {
						t.Errorf("reported again after %s", r.At.Sub(last))
					}
					last = r.At
				}
				if len(got) != len(c.want) {
					t.Fatalf("got %q, want %q", got, c.want)
				}
				for i, want := range c.want {
					if !strings.Contains(got[i], want) {
						t.Errorf("report %d says %q, want %q", i, got[i], want)
					}
				}
			})
		})
	}
}

func TestNothingIsReportedOfAPullThatWasBrokenOff(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		n.change = func(cfg *Config) { cfg.Runtime = &slow{n.host, 1000, time.Second} }
		n.run()
		n.w.Tell(life(5, records.GoalRun))
		time.Sleep(time.Minute)
		n.wantCause(causes.Pulling, "of 1000 MB")
		n.w.Tell(life(5, records.GoalStop))
		n.wantStopped(tok(5))
		before := len(n.all())
		time.Sleep(time.Hour)
		if now := n.all(); len(now) != before {
			t.Errorf("reported later: %+v", now[before:])
		}
	})
}
