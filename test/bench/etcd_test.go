package bench

import (
	"path/filepath"
	"testing"

	"github.com/stead-project/stead/store/etcdembed"
)

// BenchmarkEtcdStart is the embedded etcd alone, until it serves, on an empty
// directory: the floor of every cold start.
func BenchmarkEtcdStart(b *testing.B) {
	for b.Loop() {
		e, err := etcdembed.Start(b.Context(), etcdembed.Config{Dir: filepath.Join(b.TempDir(), "etcd")})
		must(b, err)
		b.StopTimer()
		must(b, e.Close())
		b.StartTimer()
	}
}
