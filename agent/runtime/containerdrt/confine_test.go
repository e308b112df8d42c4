package containerdrt

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	goruntime "runtime"
	"slices"
	"strings"
	"testing"

	"github.com/containerd/containerd/v2/contrib/seccomp"
	"github.com/containerd/containerd/v2/pkg/oci"
	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/spec"
)

func emptySpec() *oci.Spec {
	return &oci.Spec{
		Process: &specs.Process{Capabilities: &specs.LinuxCapabilities{}},
		Linux:   &specs.Linux{Resources: &specs.LinuxResources{}},
	}
}

func localhost(name string) spec.Profile {
	return spec.Profile{Type: spec.ProfileLocalhost, LocalhostProfile: &name}
}

func TestSeccompProfiles(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"dir/log.json": `{"defaultAction": "SCMP_ACT_LOG"}`, "broken.json": `{`, "nothing.json": `{}`,
		"large.json": `{"defaultAction": "SCMP_ACT_LOG"}` + strings.Repeat(" ", maxFilterBytes),
	} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/etc/hostname", filepath.Join(dir, "out.json")); err != nil {
		t.Fatal(err)
	}
	r := &lifecycle{daemon: &daemon{cfg: Config{SeccompDir: dir}}}
	for _, c := range []struct {
		name    string
		profile spec.Profile
		enabled bool
		action  specs.LinuxSeccompAction // "": no filter
		err     string
	}{
		{"none is written", spec.Profile{}, true, specs.ActErrno, ""},
		{"the default", spec.Profile{Type: spec.ProfileRuntimeDefault}, true, specs.ActErrno, ""},
		{"the default, without seccomp", spec.Profile{Type: spec.ProfileRuntimeDefault}, false, "", ""},
		{"unconfined", spec.Profile{Type: spec.ProfileUnconfined}, true, "", ""},
		{"a file", localhost("dir/log.json"), true, specs.ActLog, ""},
		{"a file, without seccomp", localhost("dir/log.json"), false, "", "has no seccomp"},
		{"no file", localhost("none.json"), true, "", filepath.Join(dir, "none.json") + ": "},
		{"a file elsewhere", localhost("out.json"), true, "", "escapes"},
		{"no filter", localhost("broken.json"), true, "", "broken.json"},
		{"no action", localhost("nothing.json"), true, "", "defaultAction"},
		{"too large", localhost("large.json"), true, "", "more than 1048576 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := r.filter(emptySpec(), c.profile, c.enabled)
			if (err != nil) != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Fatalf("got %v, want %q", err, c.err)
			}
			if c.action == "" && got != nil || c.action != "" && (got == nil || got.DefaultAction != c.action) {
				t.Errorf("got %+v, want %q", got, c.action)
			}
		})
	}
	if _, err := r.filter(emptySpec(), localhost("none.json"), true); !errors.Is(err, fs.ErrNotExist) || errors.Is(err, runtime.ErrBadSpec) {
		t.Errorf("a file that may come: %v", err)
	}
}

// TestTheDefaultFilterKeepsItsTablesUnlessAsked: 32-bit programs work by default.
func TestTheDefaultFilterKeepsItsTablesUnlessAsked(t *testing.T) {
	if nativeArch(goruntime.GOARCH) == "" {
		t.Skip("the default filter has one table of system calls here")
	}
	dir := t.TempDir()
	own := `{"defaultAction": "SCMP_ACT_LOG", "architectures": ["SCMP_ARCH_X86", "SCMP_ARCH_X32"]}`
	if err := os.WriteFile(filepath.Join(dir, "own.json"), []byte(own), 0o644); err != nil {
		t.Fatal(err)
	}
	var filters [2]*specs.LinuxSeccomp
	for i, only := range []bool{false, true} {
		r := &lifecycle{daemon: &daemon{cfg: Config{SeccompDir: dir, NativeOnly: only}}}
		var err error
		if filters[i], err = r.filter(emptySpec(), spec.Profile{}, true); err != nil {
			t.Fatal(err)
		}
		if file, err := r.filter(emptySpec(), localhost("own.json"), true); err != nil || len(file.Architectures) != 2 {
			t.Errorf("NativeOnly %v: the filter of a file is %+v, %v", only, file, err)
		}
	}
	all, one := filters[0], filters[1]
	if want := seccomp.DefaultProfile(emptySpec()); !reflect.DeepEqual(all, want) {
		t.Errorf("the filter without the option is not containerd's: its tables are %v", all.Architectures)
	}
	if len(one.Architectures) != 1 || one.Architectures[0] != nativeArch(goruntime.GOARCH) {
		t.Errorf("tables with the option: %v", one.Architectures)
	}
	one.Architectures = all.Architectures
	if !reflect.DeepEqual(all, one) {
		t.Error("the option changes more than the tables")
	}
}

func TestAppArmorProfiles(t *testing.T) {
	for _, c := range []struct {
		name    string
		profile spec.Profile
		enabled bool
		want    string
		fails   bool
	}{
		{"none is written", spec.Profile{}, true, "", false},
		{"unconfined", spec.Profile{Type: spec.ProfileUnconfined}, true, "", false},
		{"the default where AppArmor is off", spec.Profile{Type: spec.ProfileRuntimeDefault}, false, "", false},
		{"one of the node", localhost("db"), true, "db", false},
		{"one of the node where AppArmor is off", localhost("db"), false, "", true},
	} {
		s := emptySpec()
		if err := setAppArmor(t.Context(), s, c.profile, c.enabled); (err != nil) != c.fails || s.Process.ApparmorProfile != c.want {
			t.Errorf("%s: got %q, %v; want %q", c.name, s.Process.ApparmorProfile, err, c.want)
		}
	}
}

func TestStrictGroupsLeaveThoseOfTheImageOut(t *testing.T) {
	root := t.TempDir()
	err := os.Mkdir(filepath.Join(root, "etc"), 0o755)
	for name, text := range map[string]string{"passwd": passwdFile, "group": groupFile} {
		err = errors.Join(err, os.WriteFile(filepath.Join(root, "etc", name), []byte(text), 0o644))
	}
	if err != nil {
		t.Fatal(err)
	}
	for strict, want := range map[bool]string{false: "[5 1001 2000 2001]", true: "[5 1001]"} {
		u, err := user(runtime.Container{SupplementalGroups: []int64{5}, StrictGroups: strict}, "app", root)
		if got := fmt.Sprint(u.AdditionalGids); err != nil || got != want {
			t.Errorf("strict %v: got %s, %v; want %s", strict, got, err, want)
		}
	}
}

func TestPrivilegedContainersHaveNoFilter(t *testing.T) {
	r := &lifecycle{daemon: &daemon{}}
	s := emptySpec()
	s.Linux.MaskedPaths, s.Linux.ReadonlyPaths = []string{"/proc/kcore"}, []string{"/proc/sys"}
	s.Mounts = []specs.Mount{{Destination: "/sys", Type: "sysfs", Options: []string{"nosuid", "ro"}}}
	if err := r.confine(t.Context(), s, runtime.Container{Privileged: true, Seccomp: localhost("x")}); err != nil {
		t.Fatal(err)
	}
	devices := s.Linux.Resources.Devices
	if s.Linux.Seccomp != nil || len(s.Linux.MaskedPaths)+len(s.Linux.ReadonlyPaths) > 0 || slices.Contains(s.Mounts[0].Options, "ro") ||
		len(devices) != 1 || !devices[0].Allow || devices[0].Type != "a" && devices[0].Type != "" {
		t.Errorf("got %+v\n%+v", s.Linux, s.Mounts)
	}
}
