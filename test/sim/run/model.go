package main

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/stead-project/stead/test/sim/model"
)

// A model is given up at so many states, or after so long.
const (
	mostStates = 2_500_000
	mostTime   = 90 * time.Second
)

// explore visits the states of every model, two at a time, then looks for the plants.
func explore() (code int) {
	lines := make([]string, len(model.Models))
	var group sync.WaitGroup
	turn := make(chan struct{}, 2)
	for i, m := range model.Models {
		turn <- struct{}{}
		group.Go(func() {
			defer func() { <-turn }()
			begin := time.Now()
			r := model.New(m.Bounds, model.Plant{}).Explore(mostStates, mostTime)
			how := "all of them"
			if !r.Whole {
				how = "there are more"
			}
			lines[i] = fmt.Sprintf("%-44s %8d states (%s), %d moves, %d deep, %.1f s", m.Name, r.States, how, r.Moves, r.Depth, time.Since(begin).Seconds())
			if r.Wrong != "" {
				lines[i] += "\n  FAILED: " + r.Wrong + "\n    " + strings.Join(r.Trace, "\n    ")
			}
		})
	}
	group.Wait()
	for _, line := range lines {
		fmt.Println(line)
		if strings.Contains(line, "FAILED") {
			code = 1
		}
	}
	for _, p := range model.Plants {
		r := model.New(p.Bounds, p.Plant).Explore(mostStates, mostTime)
		if !strings.HasPrefix(r.Wrong, p.Wrong) {
			fmt.Printf("FAILED: the plant %q is not found in %d states (%q)\n", p.Name, r.States, r.Wrong)
			code = 1
			continue
		}
		fmt.Printf("planted: %s; found after %d states: %s\n    %s\n", p.Name, r.States, r.Wrong, strings.Join(r.Trace, "\n    "))
	}
	return code
}
