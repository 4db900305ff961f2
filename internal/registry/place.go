package registry

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// socketMax is how long the path of a socket can be: sun_path of unix(7), with
// the byte that ends it.
const socketMax = len(syscall.RawSockaddrUnix{}.Path) - 1

// privatePrefix begins the name of a folder that holds nothing but the socket
// of a run whose own folder has too long a path.
const privatePrefix = "cursor-wrap-"

// placeSocket finds a path for the socket of a run.
func placeSocket(folder, id string) (string, error) {
	path := filepath.Join(folder, socketName)
	if len(path) <= socketMax {
		return path, nil
	}
	for _, temp := range []string{os.TempDir(), "/tmp"} {
		dir, err := os.MkdirTemp(temp, privatePrefix+id+"-") // 0700
		if err != nil {
			return "", err
		}
		if path := filepath.Join(dir, socketName); len(path) <= socketMax && filepath.IsAbs(path) {
			return path, nil
		}
		_ = os.Remove(dir) // it is empty
	}
	return "", fmt.Errorf("no folder has a path that is short enough for a socket; the system allows %d bytes", socketMax)
}

// removePrivate removes the folder of a socket that does not stand in the run's
// own. The path comes from a file: what does not look like a folder that
// placeSocket has made for this run, or is not ours, is left alone.
func removePrivate(e Entry) {
	dir := filepath.Dir(e.Socket)
	random, ours := strings.CutPrefix(filepath.Base(dir), privatePrefix+e.RunID+"-")
	if !ours || strings.Trim(random, "0123456789") != "" || filepath.Base(e.Socket) != socketName || !filepath.IsAbs(dir) {
		return
	}
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() || info.Mode().Perm() != 0o700 || owner(info) != os.Geteuid() {
		return
	}
	_ = os.Remove(e.Socket) // without it the folder goes all the same
	_ = os.Remove(dir)      // only when it is empty
}
