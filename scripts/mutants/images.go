package main

// imageFaults are faults of volumes that are file systems in files (SAFETY S11, S13, S21).
var imageFaults = []fault{
	{"S11", "agent/volume/image.go", "want := fsID(volume); sb.id != want {", "want := fsID(volume); false {",
		suite{"agent/volume", "^TestAnImageThatIsNotThereIsNotMadeAnew$"}},
	{"S11", "agent/volume/ensure.go", "case known && noted.Image != want.Image:", "case known && false && noted.Image:",
		suite{"agent/volume", "^TestAnImageThatIsNotThereIsNotMadeAnew$"}},
	{"S11", "agent/volume/imagefs.go", "\tif s.errors {", "\tif false {",
		suite{"agent/volume", "^TestADamagedImageIsSaidAndLeft$"}},
	{"S11", "agent/volume/loop.go", "if loop, err := findLoop(f); err != nil || loop != nil {", "if loop, err := findLoop(f); err != nil {",
		suite{"agent/volume", "^TestTheImageOfAClaimIsOneFileSystem$"}},
	{"S11", "agent/volume/image.go", "return v.writer.Sync(f) })", "return nil })",
		suite{"agent/volume", "^TestAnImageIsOnDiskBeforeItHasItsName$"}},
	{"S11", "agent/volume/trash.go", "unmounted(filepath.Join(at.Name(), at.place)), notInUse(at.Root, at.place)", "unmounted(filepath.Join(at.Name(), at.place))",
		suite{"agent/volume", "^TestAnImageGoesToTheTrashAndComesBack$"}},
	{"S11", "agent/volume/imagegrow.go", "if err != nil || st.Size() >= size {", "if err != nil {",
		suite{"agent/volume", "^TestAVolumeGrowsWhileItIsWritten$"}},
	{"S11", "agent/volume/imagegrow.go", "if err := checkImage(f, o.Volume); err != nil {", "if err := error(nil); err != nil {",
		suite{"agent/volume", "^TestADamagedImageDoesNotGrow$"}},
	{"S13", "agent/volume/scratch.go", "[]string{d.subpaths, d.images, d.memory, d.scratch} {", "[]string{d.subpaths, d.memory, d.scratch} {",
		suite{"agent/volume", "^TestTheImageOfAClaimIsOneFileSystem$"}},
	{"S21", "agent/volume/loop.go", "\"queue/discard_max_bytes\"), []byte(\"0\"), 0)", "\"queue/discard_max_bytes\"), []byte(\"1073741824\"), 0)",
		suite{"agent/volume", "^TestAnImageKeepsItsSpace$"}},
	{"S21", "agent/volume/image.go", "if err := roomFor(root, bytes); err != nil {", "if err := error(nil); err != nil {",
		suite{"agent/volume", "^TestADiskThatIsTooSmallIsSaid$"}},
}
