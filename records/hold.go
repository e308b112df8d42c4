package records

import "fmt"

// Refusal is the sentence for whoever wants something changed while h stands.
func (h *Hold) Refusal() string {
	return fmt.Sprintf("%s says that the store went back: %s; nothing is changed until an operator has run 'stead restore'; running members are not affected", h.By, h.Cause)
}
