package scalar

import (
	"encoding/json"
	"math/big"
	"regexp"
	"strconv"
	"strings"
)

// suffixes are the units of a quantity: number × base^power.
var suffixes = map[string]struct{ base, power int64 }{
	"n": {10, -9}, "u": {10, -6}, "m": {10, -3}, "": {10, 0},
	"k": {10, 3}, "M": {10, 6}, "G": {10, 9}, "T": {10, 12}, "P": {10, 15}, "E": {10, 18},
	"Ki": {2, 10}, "Mi": {2, 20}, "Gi": {2, 30}, "Ti": {2, 40}, "Pi": {2, 50}, "Ei": {2, 60},
}

var (
	quantityText = regexp.MustCompile(`^([+-]?)([0-9]*)(?:\.([0-9]*))?([a-zA-Z]*)([+-]?[0-9]+)?$`)
	sloppyText   = regexp.MustCompile(`(?i)^\s*([0-9]+(?:\.[0-9]+)?)\s*([kmgtpe])(?:i?b?|bytes?)\s*$`)
)

// maxQuantityText bounds the text of a quantity; longer ones are refused unread.
const maxQuantityText = 64

// ParseQuantity reads an amount as Kubernetes writes it: a decimal number with
// a suffix n u m k M G T P E, Ki Mi Gi Ti Pi Ei, or an exponent (1e3). Amounts
// finer than a thousandth are rounded away from zero. It fails when s is no
// amount or out of the range of Quantity, and then says what to write.
func ParseQuantity(s string) (Quantity, error) {
	m := quantityText.FindStringSubmatch(s)
	if len(s) > maxQuantityText || m == nil || m[2]+m[3] == "" {
		return Quantity{}, noQuantity(s)
	}
	sign, digits, unit, exponent := m[1], m[2]+m[3], m[4], m[5]
	base, power := int64(10), int64(0)
	if exponent != "" {
		n, err := strconv.ParseInt(exponent, 10, 32)
		if err != nil || (unit != "e" && unit != "E") {
			return Quantity{}, noQuantity(s)
		}
		power = n
	} else {
		u, known := suffixes[unit]
		if !known {
			return Quantity{}, noQuantity(s)
		}
		base, power = u.base, u.power
	}
	number, _ := new(big.Int).SetString(digits, 10)
	milli, ok := scale(number, base, power, 3-int64(len(m[3])))
	if !ok {
		return Quantity{}, Hint(Quote(s)+" is out of range", "the most is 9223372036854775")
	}
	if sign == "-" {
		milli = -milli
	}
	return Quantity{Milli: milli}, nil
}

// scale is ceil(n × base^power × 10^tens), or false beyond int64. n is not negative.
func scale(n *big.Int, base, power, tens int64) (int64, bool) {
	if n.Sign() == 0 {
		return 0, true
	}
	if base == 10 {
		power, tens = 0, tens+power
	}
	// A number has at most maxQuantityText digits: beyond these it is huge or nothing.
	if tens > maxQuantityText {
		return 0, false
	}
	if tens < -2*maxQuantityText {
		return 1, true
	}
	if base == 2 {
		n = new(big.Int).Lsh(n, uint(power))
	}
	ten := new(big.Int).Exp(big.NewInt(10), big.NewInt(max(tens, -tens)), nil)
	if tens >= 0 {
		n = new(big.Int).Mul(n, ten)
	} else {
		rest := new(big.Int)
		n, rest = new(big.Int).QuoRem(n, ten, rest)
		if rest.Sign() > 0 {
			n.Add(n, big.NewInt(1))
		}
	}
	return n.Int64(), n.IsInt64()
}

func noQuantity(s string) error {
	fix := `write a number with a unit, as in 500m, 2, 1Gi`
	if m := sloppyText.FindStringSubmatch(s); m != nil {
		unit := strings.ToUpper(m[2])
		fix = "write " + m[1] + unit + "i"
	}
	return Hint(Quote(s)+" is not a size", fix)
}

// String is the canonical text: the same for equal amounts, the shortest with
// one suffix, binary before decimal. ParseQuantity gives the same amount back.
func (q Quantity) String() string {
	if q.Milli%1000 != 0 {
		return strconv.FormatInt(q.Milli, 10) + "m"
	}
	units := q.Milli / 1000
	if units == 0 {
		return "0"
	}
	binary := shorten(units, 1024, []string{"", "Ki", "Mi", "Gi", "Ti", "Pi"})
	decimal := shorten(units, 1000, []string{"", "k", "M", "G", "T", "P"})
	if len(decimal) < len(binary) {
		return decimal
	}
	return binary
}

// shorten divides n by step as often as it goes without rest.
func shorten(n, step int64, units []string) string {
	i := 0
	for i < len(units)-1 && n%step == 0 {
		n /= step
		i++
	}
	return strconv.FormatInt(n, 10) + units[i]
}

// MarshalJSON writes the canonical text.
func (q Quantity) MarshalJSON() ([]byte, error) { return json.Marshal(q.String()) }

// UnmarshalJSON reads a text or a number.
func (q *Quantity) UnmarshalJSON(b []byte) error { return Unmarshal(b, q) }

// FromLiteral implements Value.
func (q *Quantity) FromLiteral(l Literal) (err error) {
	if l.Kind == BoolLiteral {
		return noQuantity(l.Text)
	}
	*q, err = ParseQuantity(l.Text)
	return err
}
