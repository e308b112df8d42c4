package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// fault is one rule of SAFETY taken out: old is replaced by next in file, and the test
// must fail.
type fault struct {
	rule, file, old, next string
	test                  suite
}

// planted plants the faults one by one; it returns how many were not seen.
func (w *workshop) planted() (unseen int) {
	seen := 0
	for i, f := range faults {
		err := w.plant(i, f)
		if err != nil {
			unseen++
			fmt.Printf("NOT SEEN: %s: %v\n", f.rule, err)
			continue
		}
		seen++
		fmt.Printf("seen: %-4s %s by %s in %s\n", f.rule, f.file, f.test.run, f.test.folder)
	}
	fmt.Printf("%d of %d planted faults of SAFETY are seen\n", seen, len(faults))
	return unseen
}

func (w *workshop) plant(i int, f fault) error {
	path := filepath.Join(w.root, f.file)
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if n := bytes.Count(text, []byte(f.old)); n != 1 {
		return fmt.Errorf("%q stands %d times in %s, want once", f.old, n, f.file)
	}
	changed := filepath.Join(w.dir, fmt.Sprintf("fault-%d.go", i))
	if err := os.WriteFile(changed, bytes.Replace(text, []byte(f.old), []byte(f.next), 1), 0o600); err != nil {
		return err
	}
	overlay, err := w.overlayFile(fmt.Sprintf("fault-%d.json", i), map[string]string{path: changed})
	if err != nil {
		return err
	}
	program, err := w.build(f.test.folder, overlay)
	if err != nil {
		return err
	}
	defer os.Remove(program)
	if c := exec.Command(program, "-test.list", f.test.run); true {
		c.Dir = filepath.Join(w.root, f.test.folder)
		if out, err := c.Output(); err != nil || len(out) == 0 {
			return fmt.Errorf("there is no test %s in %s", f.test.run, f.test.folder)
		}
	}
	if _, ok := w.test(program, f.test, 0); ok {
		return fmt.Errorf("%s in %s passes without it", f.test.run, f.test.folder)
	}
	return nil
}
