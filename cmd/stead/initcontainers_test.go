package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// TestInitContainersAreShownApart: in a description, and in the fields of a Pod.
func TestInitContainersAreShownApart(t *testing.T) {
	zero := 0
	st := &records.ShownMember{
		MemberStatus: records.MemberStatus{Phase: records.PhaseStarting},
		Report: &records.Report{Containers: []records.ContainerReport{
			{Name: "own", Role: spec.RoleInit, State: "Exited", ExitCode: &zero},
			{Name: "ship", Role: spec.RoleSidecar, State: "Running", Ready: true},
			{Name: "db", State: "Waiting"},
		}},
	}
	main, initial := containersOf(st)
	var out bytes.Buffer
	d := describer{out: &out}
	for _, err := range []error{d.containers("Init containers", initial), d.containers("Containers", main)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	_, rest, _ := strings.Cut(out.String(), "\nInit containers:\n")
	first, second, _ := strings.Cut(rest, "\nContainers:\n")
	if !strings.Contains(first, "own ") || !strings.Contains(first, "ship (sidecar) ") || strings.Contains(first, "db ") || !strings.Contains(second, "db ") {
		t.Errorf("got:\n%s", out.String())
	}
	pod := podStatusOf(st, "")
	if pod.Phase != "Pending" || len(pod.ContainerStatuses) != 1 || len(pod.InitContainerStatuses) != 2 {
		t.Fatalf("got %+v", pod)
	}
	if own := pod.InitContainerStatuses[0]; !own.Ready || own.State["terminated"].Reason != "Completed" {
		t.Errorf("a completed init container is not ready, as it is in Kubernetes: %+v", own)
	}
}
