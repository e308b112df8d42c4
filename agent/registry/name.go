package registry

import "strings"

// FullName writes the name of an image in full, as docker does: box is
// docker.io/library/box:latest. It does not check it.
func FullName(image string) string {
	first, _, slash := strings.Cut(image, "/")
	switch {
	case !slash:
		image = "docker.io/library/" + image
	case !strings.ContainsAny(first, ".:") && first != "localhost":
		image = "docker.io/" + image
	}
	if last := image[strings.LastIndexByte(image, '/'):]; !strings.ContainsAny(last, ":@") {
		image += ":latest"
	}
	return image
}

// repository is a full name without tag and digest.
func repository(image string) string {
	full, _, _ := strings.Cut(FullName(image), "@")
	if last := strings.LastIndexByte(full, ':'); last > strings.LastIndexByte(full, '/') {
		full = full[:last]
	}
	return full
}

// Host is the registry of an image as its name says it, with the port if it has one.
func Host(image string) string {
	host, _, _ := strings.Cut(FullName(image), "/")
	return host
}
