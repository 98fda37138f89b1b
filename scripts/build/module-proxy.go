// Command module-proxy writes a module as a proxy on disk serves it: `go run module-proxy.go <module> <folder>`.
package main

import (
	"archive/zip"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"regexp"
)

func main() {
	home, destination := os.Args[1], os.Args[2]
	manifest := read(filepath.Join(home, "go.mod"))
	module := match(`(?m)^module (\S+)`, manifest)
	version := "v" + match(`const Version = "([^"]+)"`, read(filepath.Join(home, "paybell.go")))
	folder := filepath.Join(destination, module, "@v")
	check(os.MkdirAll(folder, 0o755))
	write := func(name, text string) { check(os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644)) }
	write("list", version+"\n")
	write(version+".info", fmt.Sprintf("{\"Version\":%q}\n", version))
	write(version+".mod", manifest)
	file, err := os.Create(filepath.Join(folder, version+".zip"))
	check(err)
	archive := zip.NewWriter(file)
	for _, pattern := range []string{"go.mod", "go.sum", "*.go", "*.json", "*.md", "*/*.go", "*/*/*.go"} {
		paths, err := filepath.Glob(filepath.Join(home, pattern))
		check(err)
		for _, path := range paths {
			name, err := filepath.Rel(home, path)
			check(err)
			entry, err := archive.Create(module + "@" + version + "/" + filepath.ToSlash(name))
			check(err)
			_, err = entry.Write([]byte(read(path)))
			check(err)
		}
	}
	check(archive.Close())
	check(file.Close())
}

func read(path string) string {
	text, err := os.ReadFile(path)
	check(err)
	return string(text)
}

func match(pattern, text string) string {
	found := regexp.MustCompile(pattern).FindStringSubmatch(text)
	if found == nil {
		log.Fatal("nothing matches ", pattern)
	}
	return found[1]
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
