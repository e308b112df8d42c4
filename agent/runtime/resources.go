package runtime

// Resources are what a container may use of its host, as far as that can change while it runs (Runtime.Resize).
type Resources struct {
	CPUMillis        int64 // limit; 0: none
	CPURequestMillis int64 // share; 0: none
	MemoryBytes      int64 // limit; 0: none
}
