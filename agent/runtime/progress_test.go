package runtime

import "testing"

func TestTheProgressOfAPullInWords(t *testing.T) {
	p := &PullProgress{}
	says := func(want string, tenths int64) {
		t.Helper()
		if got := p.Text("a:1"); got != want || p.Tenths() != tenths {
			t.Errorf("got %q, %d tenths, want %q, %d", got, p.Tenths(), want, tenths)
		}
	}
	says("pulling a:1: asking the registry", 0)
	p.Wait("3 other pulls")
	says("image a:1: waiting: 3 other pulls", 0)
	p.Wait("")
	p.Expect(455_000_001)
	says("pulling a:1: 0 of 456 MB", 0)
	p.Fetched(123_999_999)
	says("pulling a:1: 123 of 456 MB", 2)
	p.Fetched(-123_999_999) // once more from the beginning
	says("pulling a:1: 0 of 456 MB", 0)
	p.Fetched(455_000_001)
	says("pulling a:1: unpacking 456 MB", 10)
	p.Begin()
	says("pulling a:1: asking the registry", 0)

	var nobody *PullProgress
	nobody.Wait("x")
	nobody.Begin()
	nobody.Expect(1)
	nobody.Fetched(1)
}
