package files

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

// Allocatable is what the members of a node can have together. A field that is 0 is not known.
type Allocatable struct {
	CPUMillis   int64 // thousandths of a CPU
	MemoryBytes int64
	DiskBytes   int64
}

// limit is a limit that a container does not set.
func (a Allocatable) limit(name string) scalar.Quantity {
	switch name {
	case "cpu":
		return scalar.Quantity{Milli: a.CPUMillis}
	case "memory":
		return scalar.Quantity{Milli: a.MemoryBytes * 1000}
	case "ephemeral-storage":
		return scalar.Quantity{Milli: a.DiskBytes * 1000}
	}
	return scalar.Quantity{}
}

// containerOf is the container that ref names; c is the one in which it is written, nil in a
// volume. Errors: *MissingError.
func containerOf(l *records.Life, c *spec.Container, ref *spec.ResourceFieldRef) (*spec.Container, error) {
	if ref.ContainerName == "" && c != nil {
		return c, nil
	}
	for x := range l.Template.Spec.All() {
		if x.Name == ref.ContainerName {
			return x, nil
		}
	}
	return nil, &MissingError{fmt.Sprintf("there is no container %q", ref.ContainerName)}
}

// resourceValue is what ref shows, as Kubernetes counts it. Errors: *MissingError.
func resourceValue(l *records.Life, c *spec.Container, ref *spec.ResourceFieldRef, n Node) (string, error) {
	x, err := containerOf(l, c, ref)
	if err != nil {
		return "", err
	}
	kind, name, _ := strings.Cut(ref.Resource, ".")
	q := x.Resources.Limits[name]
	if kind == "requests" {
		if asked, ok := x.Resources.Requests[name]; ok {
			q = asked
		}
	} else if q.Milli == 0 {
		q = n.Allocatable.limit(name)
	}
	unit := ref.Divisor.Milli
	if unit <= 0 {
		unit = 1000
	}
	units := q.Milli / unit
	if q.Milli%unit > 0 {
		units++
	}
	return strconv.FormatInt(units, 10), nil
}
