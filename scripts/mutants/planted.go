package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// fault is one rule of SAFETY taken out: old is replaced by next in file, and the test
// must fail.
type fault struct {
	rule, file, old, next string
	test                  suite
}

var allFaults = slices.Concat(
	faults,
	strangers, rotations,
	joined,
	differences,
	claimFaults,
	quotaFaults,
	imageFaults,
	moveFaults,
	backFaults,
	abortFaults,
	unknownFaults,
	upgradeFaults,
	copyFaults,
	contract, leave, job, differing, inPlace, changing,
	serverFaults,
	examples,
)

// chosen are the faults that only names: all ("" and planted), those of a rule (S11), or those of a file or folder
// (planted/server/engine); none: it names conditions.
func chosen(only string) (list []fault) {
	file, planted := strings.CutPrefix(only+"/", "planted/")
	for _, f := range allFaults {
		if only == "" || f.rule == only || planted && strings.HasPrefix(f.file+"/", file) {
			list = append(list, f)
		}
	}
	return list
}

// planted plants the faults one by one; it returns how many were not seen.
func (w *workshop) planted(list []fault) (unseen int) {
	seen, sound := 0, map[suite]error{}
	for i, f := range list {
		if _, known := sound[f.test]; !known {
			sound[f.test] = w.passes(f.test)
		}
		err := sound[f.test]
		if err == nil {
			err = w.plant(i, f)
		}
		if err != nil {
			unseen++
			fmt.Printf("NOT SEEN: %s: %v\n", f.rule, err)
			continue
		}
		seen++
		fmt.Printf("seen: %-4s %s by %s in %s\n", f.rule, f.file, f.test.run, f.test.folder)
	}
	fmt.Printf("%d of %d planted faults of SAFETY are seen\n", seen, seen+unseen)
	return unseen
}

// passes fails when there is no such test, or when it fails without any fault.
func (w *workshop) passes(s suite) error {
	overlay, err := w.overlayFile("none.json", nil)
	if err != nil {
		return err
	}
	program, err := w.build(s.folder, overlay)
	if err != nil {
		return err
	}
	defer os.Remove(program)
	c := exec.Command(program, "-test.list", s.run)
	c.Dir = filepath.Join(w.root, s.folder)
	if out, err := c.Output(); err != nil || len(out) == 0 {
		return fmt.Errorf("there is no test %s in %s", s.run, s.folder)
	}
	if out, ok := w.test(program, s, 0, 10*time.Minute); !ok {
		return fmt.Errorf("%s in %s fails without any fault:\n%s", s.run, s.folder, out)
	}
	return nil
}

func (w *workshop) plant(i int, f fault) error {
	path := filepath.Join(w.root, f.file)
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if n := bytes.Count(text, []byte(f.old)); n != 1 {
		return fmt.Errorf("%q occurs %d times in %s, want once", f.old, n, f.file)
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
	if _, ok := w.test(program, f.test, 0, 10*time.Minute); ok {
		return fmt.Errorf("%s in %s passes without it", f.test.run, f.test.folder)
	}
	return nil
}
