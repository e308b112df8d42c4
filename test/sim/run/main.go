// Command run simulates many clusters and prints what happened in them. A run that
// broke a promise is shrunk, told step by step, and written as a file for testdata.
package main

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stead-project/stead/test/sim"
	"github.com/stead-project/stead/test/sim/model"
	"github.com/stead-project/stead/test/sim/model/move"
	"github.com/stead-project/stead/test/sim/model/servers"
	"github.com/stead-project/stead/test/sim/model/states"
	"github.com/stead-project/stead/test/sim/plants"
)

// enough is from how many steps on everything happens that can.
const enough = 1_000_000

func main() {
	debug.SetGCPercent(400) // memory is cheaper than time here
	first := flag.Uint64("seed", uint64(time.Now().UnixNano()), "the first seed")
	seeds := flag.Int("seeds", 1, "run at least so many seeds")
	steps := flag.Int("steps", enough, "and make at least so many steps")
	plant := flag.String("plant", "", "put in this fault")
	often := flag.String("often", "", "draw these kinds of choices more often: restore,scale")
	kept := flag.String("replay", "", "replay this file instead, and tell it")
	out := flag.String("out", ".cache/sim-failed.txt", "where a run that failed is written")
	all := flag.Bool("plants", false, "look for every plant instead: each must be found")
	models := flag.Bool("model", false, "explore the small models instead, state by state")
	flag.Parse()
	if *kept != "" {
		os.Exit(tell(*kept))
	}
	if *all {
		os.Exit(find())
	}
	if *models {
		os.Exit(explore())
	}
	p, ok := plants.Named(*plant)
	if !ok {
		fmt.Fprintf(os.Stderr, "there is no plant %q\n", *plant)
		os.Exit(2)
	}
	if *often != "" {
		p.Often = strings.Split(*often, ",")
	}
	begin := time.Now()
	t := sim.RunMany(*first, *seeds, *steps, p)
	took := time.Since(begin)
	fmt.Printf("%d seeds from %d, %d steps in %.1f s\n", t.Runs, *first, t.Steps, took.Seconds())
	counts(t.Counts)
	if t.Failed == nil {
		if never := sim.Never(t.Counts, true); len(never) > 0 && t.Steps >= enough {
			fmt.Printf("FAILED: these never happened, and should have: %q\n", never)
			os.Exit(1)
		}
		return
	}
	script := t.Failed.Script()
	fmt.Printf("FAILED: %s\nshrinking %d choices of seed %d\n", script.Found, len(script.Choices), script.Seed)
	script = script.Shrink(t.Failed.Violation().Judge, 2000)
	if err := os.WriteFile(*out, []byte(script.String()), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	fmt.Print(script)
	_, _ = script.Replay(func(line string) { fmt.Println("  ", line) })
	fmt.Printf("written to %s; move it to test/sim/testdata\n", *out)
	os.Exit(1)
}

// counts prints what was done and what happened, in three lists.
func counts(c map[string]int) {
	lists := map[string][]string{}
	for _, k := range slices.Sorted(maps.Keys(c)) {
		list := "done"
		if strings.HasPrefix(k, "blocked: ") {
			list = "waited for"
		} else if sim.IsFault(k) {
			list = "faults"
		}
		lists[list] = append(lists[list], fmt.Sprintf("%s %d", strings.TrimPrefix(strings.TrimPrefix(k, "blocked: "), "fault: "), c[k]))
	}
	for _, list := range []string{"faults", "done", "waited for"} {
		fmt.Printf("%s: %s\n", list, strings.Join(lists[list], ", "))
	}
}

// find looks for every plant; of those that take hundreds of seeds it replays the kept run.
func find() (code int) {
	for _, p := range plants.All {
		text := ""
		if p.Rare {
			file := filepath.Join("test/sim/testdata", p.Name+".txt")
			found, err := replay(file, nil)
			if err != nil || found == nil {
				code = 1
				text = fmt.Sprintf("not found in its kept run %s (error %v)", file, err)
			} else {
				text = fmt.Sprintf("found in its kept run: %v", found)
			}
		} else if t, err := sim.Find(p, 2000); err != nil {
			code = 1
			text = err.Error()
		} else {
			text = fmt.Sprintf("found after %d seeds, %d steps: %v", t.Runs, t.Steps, t.Failed.Violation())
		}
		fmt.Printf("%-28s %s\n", p.Name, text)
	}
	return code
}

// replay replays a kept run, and returns what it found.
func replay(file string, trace func(string)) (*sim.Violation, error) {
	s, err := sim.ReadScript(file)
	if err != nil {
		return nil, err
	}
	return s.Replay(trace)
}

func tell(file string) int {
	v, err := replay(file, func(line string) { fmt.Println("  ", line) })
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		return 2
	case v != nil:
		fmt.Println("FAILED:", v)
		return 1
	}
	fmt.Println("no promise was broken")
	return 0
}

// A model is given up at so many states, or after so long.
const (
	mostStates = 2_500_000
	mostTime   = 90 * time.Second
	// mostServers is less, for a state of servers is a kilobyte.
	mostServers = 1_000_000
)

// explored is a model to be explored, or a plant to be found in one; of a plant wrong is how what is found begins.
type explored struct {
	name, wrong string
	explore     func() states.Result
}

// explore visits the states of every model, two at a time, then looks for the plants.
func explore() (code int) {
	var models, planted []explored
	for _, m := range model.Models {
		models = append(models, explored{name: m.Name, explore: func() states.Result { return model.New(m.Bounds, model.Plant{}).Explore(mostStates, mostTime) }})
	}
	for _, m := range move.Models {
		models = append(models, explored{name: m.Name, explore: func() states.Result { return move.New(m.Bounds, move.Plant{}).Explore(mostStates, mostTime) }})
	}
	for _, m := range servers.Models {
		models = append(models, explored{name: m.Name, explore: func() states.Result { return servers.New(m.Bounds, servers.Plant{}).Explore(mostServers, mostTime) }})
	}
	for _, p := range model.Plants {
		planted = append(planted, explored{p.Name, p.Wrong, func() states.Result { return model.New(p.Bounds, p.Plant).Explore(mostStates, mostTime) }})
	}
	for _, p := range move.Plants {
		planted = append(planted, explored{p.Name, p.Wrong, func() states.Result { return move.New(p.Bounds, p.Plant).Explore(mostStates, mostTime) }})
	}
	for _, p := range servers.Plants {
		planted = append(planted, explored{p.Name, p.Wrong, func() states.Result { return servers.New(p.Bounds, p.Plant).Explore(mostServers, mostTime) }})
	}
	lines := make([]string, len(models))
	var group sync.WaitGroup
	turn := make(chan struct{}, 2)
	for i, m := range models {
		turn <- struct{}{}
		group.Go(func() {
			defer func() { <-turn }()
			begin := time.Now()
			r := m.explore()
			how := "all of them"
			if !r.Whole {
				how = "there are more"
			}
			lines[i] = fmt.Sprintf("%-55s %8d states (%s), %d moves, %d deep, %.1f s", m.name, r.States, how, r.Moves, r.Depth, time.Since(begin).Seconds())
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
	for _, p := range planted {
		r := p.explore()
		if !strings.HasPrefix(r.Wrong, p.wrong) {
			fmt.Printf("FAILED: the plant %q is not found in %d states (%q)\n", p.name, r.States, r.Wrong)
			code = 1
			continue
		}
		fmt.Printf("planted: %s; found after %d states: %s\n    %s\n", p.name, r.States, r.Wrong, strings.Join(r.Trace, "\n    "))
	}
	return code
}
