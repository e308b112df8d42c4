// Command debimage builds container images from Debian packages: no chroot, no
// maintainer scripts, no root, and the same bytes each time. From the repository's
// root:
//
//	go run ./scripts/debimage [-repin] NAME...
//
// reads scripts/images/NAME.list, downloads the packages it pins into .cache/debs
// with apt-get and writes .cache/images/NAME.tar, an OCI archive for
// `stead image load`. With -repin it writes the versions that Debian offers now
// into the lists instead. A list holds, one a line:
//
//	image NAME:TAG     what the image is called
//	from LIST          take LIST's packages as a layer below, shared by digest
//	user NAME UID      a line for /etc/passwd and /etc/group
//	env NAME=VALUE     a variable of the image
//	entrypoint PROGRAM what containers without a command run
//	PACKAGE=VERSION    a package, nothing of what it depends on
//	jar GROUP:NAME:VERSION[:CLASSIFIER] SHA256
//	                   a file of Maven Central, with that sum, below /usr/share/java/LIST; kept in .cache/jars
//	go PROGRAM         a Go program in /usr/bin, built static from the Go module proxy: PROGRAM is its import path, and
//	                   scripts/images/LIST is a module of its own, whose go.mod and go.sum pin it
package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

func main() {
	lists := flag.String("lists", "scripts/images", "folder of the lists")
	debs := flag.String("debs", ".cache/debs", "folder that keeps downloaded packages")
	jars := flag.String("jars", ".cache/jars", "folder that keeps downloaded files of Maven Central")
	out := flag.String("out", ".cache/images", "folder for the images")
	repin := flag.Bool("repin", false, "write the versions that Debian offers now into the lists")
	flag.Parse()
	if flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "usage: debimage [-repin] NAME...")
		os.Exit(2)
	}
	for _, name := range flag.Args() {
		var err error
		if *repin {
			err = Repin(*lists, name)
		} else {
			err = build(*lists, *debs, *jars, *out, name)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "debimage:", err)
			os.Exit(1)
		}
	}
}

// build makes one image, unless the same program made it from the same lists before.
func build(lists, debs, jars, out, name string) error {
	began := time.Now()
	chain, err := ReadChain(lists, name)
	if err != nil {
		return err
	}
	archive := filepath.Join(out, name+".tar")
	inputs, err := digestInputs(chain)
	if err != nil {
		return err
	}
	if last, err := os.ReadFile(archive + ".inputs"); err == nil && string(last) == inputs {
		if _, err := os.Stat(archive); err == nil {
			fmt.Printf("image %s: %s is up to date\n", chain[len(chain)-1].Image, archive)
			return nil
		}
	}
	top := chain[len(chain)-1]
	image := Image{Name: top.Image, Env: top.Env, Entrypoint: top.Entrypoint}
	for i, list := range chain {
		files, err := Fetch(list, debs)
		if err != nil {
			return err
		}
		tree := Tree{}
		for _, f := range files {
			if err := tree.AddPackage(f); err != nil {
				return err
			}
		}
		if err := errors.Join(tree.AddJars(list, jars), tree.AddPrograms(list)); err != nil {
			return err
		}
		if i == 0 {
			tree.AddSkeleton()
		}
		if i == len(chain)-1 {
			tree.AddUsers(list.Users)
		}
		layer, err := tree.Tar()
		if err != nil {
			return fmt.Errorf("layer of %s: %w", list.Path, err)
		}
		image.Layers = append(image.Layers, layer)
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	if err := errors.Join(image.WriteFile(archive), os.WriteFile(archive+".inputs", []byte(inputs), 0o644)); err != nil {
		return err
	}
	size := 0
	for _, l := range image.Layers {
		size += len(l)
	}
	fmt.Printf("image %s: %s, %d MB in %s\n", image.Name, archive, size>>20, time.Since(began).Round(100*time.Millisecond))
	return nil
}

// digestInputs names all that an image's bytes depend on: this program, which the same Go made that makes Go programs,
// the lists, and what pins their Go programs.
func digestInputs(chain []List) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	h := sha256.New()
	inputs := []string{self}
	for _, l := range chain {
		inputs = append(inputs, l.Path)
		if len(l.Programs) > 0 {
			inputs = append(inputs, filepath.Join(l.module(), "go.mod"), filepath.Join(l.module(), "go.sum"))
		}
	}
	for _, path := range inputs {
		b, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%d\n", len(b))
		h.Write(b)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
