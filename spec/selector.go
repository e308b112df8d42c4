package spec

import (
	"regexp"
	"slices"
	"strings"

	"github.com/stead-project/stead/spec/scalar"
)

// The operators of a SelectorRequirement.
const (
	In           = "In"
	NotIn        = "NotIn"
	Exists       = "Exists"
	DoesNotExist = "DoesNotExist"
)

// Matches reports whether labels satisfy all of s. A nil selector matches
// nothing, an empty one everything.
func (s *LabelSelector) Matches(labels map[string]string) bool {
	if s == nil {
		return false
	}
	for key, value := range s.MatchLabels {
		if got, ok := labels[key]; !ok || got != value {
			return false
		}
	}
	for _, r := range s.MatchExpressions {
		if !r.matches(labels) {
			return false
		}
	}
	return true
}

// matches: an absent label satisfies NotIn; an unknown operator matches nothing.
func (r SelectorRequirement) matches(labels map[string]string) bool {
	value, has := labels[r.Key]
	switch r.Operator {
	case In:
		return has && slices.Contains(r.Values, value)
	case NotIn:
		return !has || !slices.Contains(r.Values, value)
	case Exists:
		return has
	case DoesNotExist:
		return !has
	}
	return false
}

var (
	pairTerm = regexp.MustCompile(`^([^\s!=,()]+)\s*(==|=|!=)\s*([^\s!=,()]*)$`)
	listTerm = regexp.MustCompile(`^([^\s!=,()]+)\s+(in|notin)\s*\(([^()]*)\)$`)
	keyTerm  = regexp.MustCompile(`^(!?)\s*([^\s!=,()]+)$`)
)

// ParseSelector reads what the command line takes: k=v, k==v, k!=v, k, !k,
// k in (a,b), k notin (a,b), joined by commas, all of which must match. Empty
// text is the empty selector.
func ParseSelector(text string) (*LabelSelector, error) {
	s := &LabelSelector{}
	for _, term := range splitTerms(text) {
		r, ok := parseTerm(term)
		if !ok || !scalar.ValidLabelKey(r.Key) || slices.ContainsFunc(r.Values, func(v string) bool { return !scalar.ValidLabelValue(v) }) {
			return nil, scalar.Hint(scalar.Quote(term)+" is not a selector", "write k=v, k!=v, k, !k or k in (a,b), joined by commas")
		}
		s.MatchExpressions = append(s.MatchExpressions, r)
	}
	return s, nil
}

// splitTerms cuts at the commas outside of parentheses.
func splitTerms(text string) []string {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	var terms []string
	start, depth := 0, 0
	for i, c := range text {
		switch {
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == ',' && depth <= 0:
			terms = append(terms, strings.TrimSpace(text[start:i]))
			start = i + 1
		}
	}
	return append(terms, strings.TrimSpace(text[start:]))
}

func parseTerm(term string) (SelectorRequirement, bool) {
	if m := pairTerm.FindStringSubmatch(term); m != nil {
		operator := In
		if m[2] == "!=" {
			operator = NotIn
		}
		return SelectorRequirement{m[1], operator, []string{m[3]}}, true
	}
	if m := listTerm.FindStringSubmatch(term); m != nil {
		operator := In
		if m[2] == "notin" {
			operator = NotIn
		}
		values := strings.Split(m[3], ",")
		for i := range values {
			values[i] = strings.TrimSpace(values[i])
		}
		return SelectorRequirement{m[1], operator, values}, true
	}
	if m := keyTerm.FindStringSubmatch(term); m != nil {
		operator := Exists
		if m[1] == "!" {
			operator = DoesNotExist
		}
		return SelectorRequirement{Key: m[2], Operator: operator}, true
	}
	return SelectorRequirement{}, false
}
