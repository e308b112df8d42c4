package records

import "fmt"

// Format is format: which servers may use the store; absent: all. It only rises.
type Format struct {
	// Lowest is the lowest format that a server must know. v0.1.0 knows 1, and does not look here.
	Lowest int `json:"lowest"`
	// Why is what was stored first that servers of lower formats do not know, for people.
	Why string `json:"why"`
}

// Refusal says to a server that knows formats up to known why it may not use the store; "": it may. f may be nil.
func (f *Format) Refusal(known int) string {
	if f == nil || f.Lowest <= known {
		return ""
	}
	return fmt.Sprintf("the store has format %d (%s), and this server knows formats up to %d only: start a server of the later release again; "+
		"to go back to this one, restore a backup of before the upgrade", f.Lowest, f.Why, known)
}
