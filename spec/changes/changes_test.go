package changes

import "testing"

func TestWhatMayChangeIsWhatTheSetLists(t *testing.T) {
	for _, tc := range []struct {
		c       InPlace
		allowed []Kind
		want    Kind
	}{
		{InPlace{}, nil, ""},
		{InPlace{Image: true}, nil, Image},
		{InPlace{Image: true}, []Kind{Resources}, Image},
		{InPlace{Image: true}, []Kind{Image}, ""},
		{InPlace{true, true}, []Kind{Image}, Resources},
		{InPlace{Image: true}.Plus(InPlace{Resources: true}), []Kind{Image}, Resources},
		{InPlace{true, true}, []Kind{Image, Resources}, ""},
	} {
		if got := tc.c.Beyond(tc.allowed); got != tc.want {
			t.Errorf("%+v with %v: %q, want %q", tc.c, tc.allowed, got, tc.want)
		}
	}
}
