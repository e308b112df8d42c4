package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// toolBinary is ./tool, built by TestMain.
var toolBinary string

// steadBinary is the program under test: STEAD_BIN, or bin/stead of this tree.
var steadBinary = "../../bin/stead"

func TestMain(m *testing.M) {
	if os.Getenv("STEAD_ROOT_TESTS") != "1" {
		os.Exit(m.Run())
	}
	os.Setenv("STEAD_TEST_RUN_DIR_ON_DISK", "1") // labs lie below the temporary directory
	dir, err := os.MkdirTemp("", "stead-tool-")
	if err == nil {
		err = errors.Join(findBinary(), buildTool(dir))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

func buildTool(dir string) error {
	toolBinary = filepath.Join(dir, "tool")
	cmd := exec.Command("go", "build", "-o", toolBinary, "./tool")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the test tool: %w\n%s", err, out)
	}
	return nil
}

func findBinary() error {
	if named := os.Getenv("STEAD_BIN"); named != "" {
		steadBinary = named
	}
	abs, err := filepath.Abs(steadBinary)
	if err != nil {
		return err
	}
	if _, err := os.Stat(abs); err != nil {
		return fmt.Errorf("no stead binary: %w; run make build", err)
	}
	steadBinary = abs
	return nil
}
