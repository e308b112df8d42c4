package scalar

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"testing"
)

func TestParseQuantity(t *testing.T) {
	tests := []struct {
		name, text string
		milli      int64
		canonical  string
	}{
		{"a plain number", "2", 2000, "2"},
		{"zero", "0", 0, "0"},
		{"a fraction", "0.5", 500, "500m"},
		{"a fraction without whole part", ".5", 500, "500m"},
		{"a number that ends with a point", "5.", 5000, "5"},
		{"thousandths", "1500m", 1500, "1500m"},
		{"whole thousandths", "2000m", 2000, "2"},
		{"millionths round up", "1u", 1, "1m"},
		{"billionths round up", "1000001n", 2, "2m"},
		{"a negative amount rounds away from zero", "-1u", -1, "-1m"},
		{"thousands", "1k", 1000_000, "1k"},
		{"binary thousands", "1Ki", 1024_000, "1Ki"},
		{"millions", "3M", 3_000_000_000, "3M"},
		{"binary sizes", "1Gi", 1 << 30 * 1000, "1Gi"},
		{"equal sizes have equal text", "1024Mi", 1 << 30 * 1000, "1Gi"},
		{"a fraction of a binary size", "1.5Gi", 3 << 29 * 1000, "1536Mi"},
		{"tera", "2T", 2e15, "2T"},
		{"peta", "1P", 1e18, "1P"},
		{"an exponent", "1e3", 1e6, "1k"},
		{"a capital exponent with sign", "12E+2", 1200_000, "1200"},
		{"a negative exponent", "5e-1", 500, "500m"},
		{"a tiny exponent", "1e-900", 1, "1m"},
		{"zero with a huge exponent", "0e999", 0, "0"},
		{"leading zeros", "007", 7000, "7"},
		{"a plus sign", "+1", 1000, "1"},
		{"the largest", "9223372036854775", 9223372036854775000, "9223372036854775"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			q, err := ParseQuantity(tt.text)
			if err != nil || q.Milli != tt.milli || q.String() != tt.canonical {
				t.Errorf("got %d %q %v, want %d %q", q.Milli, q, err, tt.milli, tt.canonical)
			}
		})
	}
}

func TestParseQuantityRefuses(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"a space and a wrong unit", "1 GB", `"1 GB" is not a size; write 1Gi`},
		{"lower case units", "512mb", `"512mb" is not a size; write 512Mi`},
		{"a capital K", "4K", `"4K" is not a size; write 4Ki`},
		{"gib", "1.5gib", `"1.5gib" is not a size; write 1.5Gi`},
		{"nothing", "", `"" is not a size; write a number with a unit, as in 500m, 2, 1Gi`},
		{"only a sign", "-", `"-" is not a size; write a number with a unit, as in 500m, 2, 1Gi`},
		{"only a unit", "Gi", `"Gi" is not a size; write a number with a unit, as in 500m, 2, 1Gi`},
		{"words", "lots", `"lots" is not a size; write a number with a unit, as in 500m, 2, 1Gi`},
		{"a unit and an exponent", "1Ki3", `"1Ki3" is not a size; write a number with a unit, as in 500m, 2, 1Gi`},
		{"exa, which is out of range", "1E", `"1E" is out of range; the most is 9223372036854775`},
		{"one too many", "9223372036854776", `"9223372036854776" is out of range; the most is 9223372036854775`},
		{"a huge exponent", "1e999999999", `"1e999999999" is out of range; the most is 9223372036854775`},
		{"an exponent beyond int32", "1e99999999999", `"1e99999999999" is not a size; write a number with a unit, as in 500m, 2, 1Gi`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			q, err := ParseQuantity(tt.text)
			if err == nil || err.Error() != tt.want {
				t.Errorf("got %v %v, want %s", q, err, tt.want)
			}
		})
	}
}

func TestQuantityTextComesBack(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	for range 20000 {
		q := Quantity{Milli: r.Int64() >> r.IntN(63)}
		switch r.IntN(4) {
		case 0:
			q.Milli = q.Milli / 1000 * 1000
		case 1:
			q.Milli = q.Milli / 1024000 * 1024000
		case 2:
			q.Milli = -q.Milli
		}
		b, err := json.Marshal(q)
		if err != nil {
			t.Fatal(err)
		}
		var back Quantity
		if err := json.Unmarshal(b, &back); err != nil || back != q {
			t.Fatalf("%d became %s and came back as %d, %v", q.Milli, b, back.Milli, err)
		}
	}
}

func FuzzQuantity(f *testing.F) {
	for _, s := range []string{"1", "500m", "1.5Gi", "1e3", "1E", "-1u", "1 GB", "9223372036854775", ".", "1e-999"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		q, err := ParseQuantity(s)
		if err != nil {
			return
		}
		if q.Milli == math.MinInt64 {
			t.Fatalf("%q is out of range and was taken", s)
		}
		back, err := ParseQuantity(q.String())
		if err != nil || back != q {
			t.Fatalf("%q became %q and came back as %v, %v", s, q, back, err)
		}
	})
}
