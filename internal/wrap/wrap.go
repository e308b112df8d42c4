// Package wrap says of an error what was being done.
package wrap

import "fmt"

// Error puts what was being done in front of *err; nil stays nil. A function with many ways to
// fail says it once: defer wrap.Error(&err, "restore volume %s", name).
func Error(err *error, format string, args ...any) {
	if *err != nil {
		*err = fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), *err)
	}
}
