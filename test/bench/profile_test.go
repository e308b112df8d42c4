package bench

import (
	"errors"
	"os"
	"runtime"
	"runtime/pprof"
)

// profiles are of what this process does: its processor time in PATH.pprof, and in PATH.allocs.pprof and PATH.block.pprof what it
// allocated and where its goroutines waited since it began (compare two: pprof -diff_base).
type profiles struct {
	cpu  *os.File
	path string
}

// to begins them at a path, or ends them at "-".
func (p *profiles) to(path string) (err error) {
	if path != "-" {
		runtime.SetBlockProfileRate(1)
		if p.cpu, err = os.Create(path + ".pprof"); err != nil {
			return err
		}
		p.path = path
		return pprof.StartCPUProfile(p.cpu)
	}
	pprof.StopCPUProfile()
	runtime.SetBlockProfileRate(0)
	return errors.Join(p.cpu.Close(), p.write("allocs"), p.write("block"))
}

func (p *profiles) write(kind string) error {
	f, err := os.Create(p.path + "." + kind + ".pprof")
	if err != nil {
		return err
	}
	return errors.Join(pprof.Lookup(kind).WriteTo(f, 0), f.Close())
}
