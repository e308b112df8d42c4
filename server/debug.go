package server

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/pprof"
	"strings"
	"time"

	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
)

// profileTime bounds a profile or trace that is asked of a debug page.
const profileTime = 2 * time.Minute

// debugPages answer /debug/pprof, and /debug/world?set=NAMESPACE/NAME with the world of a set
// as the planner sees it, a line that plan.ReadWorld reads. They are off unless asked for:
// templates, and so the values of variables, are in them.
func (s *Server) debugPages(mux *http.ServeMux) {
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	mux.HandleFunc("/debug/world", s.debugWorld)
}

func (s *Server) debugWorld(w http.ResponseWriter, r *http.Request) {
	namespace, name, ok := strings.Cut(r.URL.Query().Get("set"), "/")
	if !ok {
		http.Error(w, "name a set: /debug/world?set=NAMESPACE/NAME", http.StatusBadRequest)
		return
	}
	var world plan.World
	s.cache.Look(func(v cache.View) {
		world = s.engine.World(v, spec.SetRef{Namespace: spec.Namespace(namespace), Name: spec.SetName(name)}, nil)
	})
	if world.Set == nil && len(world.Slots) == 0 {
		http.Error(w, "there is no such set, and nothing is left of one", http.StatusNotFound)
		return
	}
	line, err := world.Dump()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, "%s\n", line) // who asked may be gone
}

var errDebugWithoutMetrics = errors.New("--debug needs --metrics: the debug pages are served there")
