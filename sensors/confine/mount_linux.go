package confine

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"unsafe"
)

const (
	sysMountSetattr = 442
	atRecursive     = 0x8000
	mountReadOnly   = 1
)

// empty is what a hidden file is replaced by; nothing connects to it.
const empty = "/dev/null"

// arrange gives the calling thread a mount namespace of its own and arranges it:
// every mount read-only, hidden what is to be hidden, a working directory whose
// changes are kept in memory and dropped. With appendable those directories stay
// as they are, for Landlock to guard: a log may be larger than the memory that a
// copy would take. It returns the layers that are in force; what a kernel refuses
// is missing among them.
func (m *Mounts) arrange(dir string, appendable bool) (layers []string) {
	if syscall.Unshare(syscall.CLONE_NEWNS) != nil {
		return nil
	}
	// Nothing of this reaches the machine's own mounts.
	if syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, "") != nil {
		return nil
	}
	keep := opened(m.Keep)
	defer keep.close()
	if m.freeze(appendable) {
		layers = append(layers, Files)
		m.overlay(dir)
	}
	if m.hide(keep) {
		layers = append(layers, Hidden)
	}
	return layers
}

// freeze makes every mount read-only, and gives the sensor memory of its own.
func (m *Mounts) freeze(appendable bool) bool {
	var open []string
	for _, d := range Appendable {
		// A mount of its own, whose flags are then its own.
		if appendable && syscall.Mount(d, d, "", syscall.MS_BIND|syscall.MS_REC, "") == nil {
			open = append(open, d)
		}
	}
	if setReadOnly("/", mountReadOnly, 0, atRecursive) != nil {
		return false
	}
	for _, d := range open {
		_ = setReadOnly(d, 0, mountReadOnly, 0) // else it stays read-only
	}
	return tmpfs(Scratch, "mode=1777,size=64m") == nil
}

// setReadOnly sets or clears attributes of the mount at path.
func setReadOnly(path string, set, clear uint64, flags uintptr) error {
	attr := struct{ set, clr, propagation, userns uint64 }{set: set, clr: clear}
	p, err := syscall.BytePtrFromString(path)
	if err != nil {
		return err
	}
	const cwd = ^uintptr(99) // AT_FDCWD, -100
	_, _, errno := syscall.Syscall6(sysMountSetattr, cwd, uintptr(unsafe.Pointer(p)), flags, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno != 0 {
		return errno
	}
	return nil
}

func tmpfs(at, options string) error {
	return syscall.Mount("gettier", at, "tmpfs", syscall.MS_NOSUID|syscall.MS_NODEV, options)
}

// overlay lays memory over the working directory, for programs that open their
// logs in order to check their configuration. Where it cannot be had the directory
// is as read-only as the others. It comes with the lines for /etc/hosts.
func (m *Mounts) overlay(dir string) {
	const at = Scratch + "/gettier"
	if tmpfs(Scratch, "mode=0700,size=64m") != nil {
		return
	}
	// The layers hold on to that memory; a sensor does not see it.
	defer func() { _ = syscall.Unmount(Scratch, syscall.MNT_DETACH) }()
	d, err := filepath.EvalSymlinks(dir)
	usable := err == nil && d != "/" && d != Scratch && !strings.ContainsAny(d, ",:\\") && !mountPoints().below(d)
	if usable && os.MkdirAll(at+"/upper", 0o700) == nil && os.Mkdir(at+"/work", 0o700) == nil {
		if st, err := os.Stat(d); err == nil {
			_ = os.Chmod(at+"/upper", st.Mode().Perm()) // else it is as narrow as it was made
		}
		_ = syscall.Mount("gettier", d, "overlay", 0, "lowerdir="+d+",upperdir="+at+"/upper,workdir="+at+"/work,userxattr")
	}
	if m.Hosts == "" {
		return
	}
	b, err := os.ReadFile("/etc/hosts")
	if err == nil && os.WriteFile(Scratch+"/hosts", append([]byte(m.Hosts), b...), 0o644) == nil {
		_ = syscall.Mount(Scratch+"/hosts", "/etc/hosts", "", syscall.MS_BIND, "") // else the names do not resolve, which the sensor says
	}
}

// hide empties what is to be hidden and is there.
func (m *Mounts) hide(keep kept) bool {
	for _, path := range m.Hide {
		info, err := os.Lstat(path)
		if err != nil {
			continue
		}
		if info.IsDir() {
			if tmpfs(path, "mode=0755,size=64k") != nil {
				return false
			}
			keep.put(path)
			continue
		}
		if info.Mode()&os.ModeSymlink != 0 {
			if path, err = filepath.EvalSymlinks(path); err != nil {
				continue
			}
		}
		if keep[path] != 0 {
			continue
		}
		if syscall.Mount(empty, path, "", syscall.MS_BIND, "") != nil {
			return false
		}
	}
	return true
}

// kept are the sockets that stay, by descriptors that were opened before their
// directory was hidden.
type kept map[string]int

func opened(paths []string) kept {
	k := kept{}
	for _, p := range paths {
		full, err := filepath.EvalSymlinks(p)
		if err != nil {
			continue
		}
		if fd, err := syscall.Open(full, oPath|syscall.O_CLOEXEC, 0); err == nil {
			k[full] = fd
		}
	}
	return k
}

// put puts back what was under dir.
func (k kept) put(dir string) {
	for path, fd := range k {
		if !strings.HasPrefix(path, dir+"/") || os.MkdirAll(filepath.Dir(path), 0o755) != nil {
			continue
		}
		if f, err := os.OpenFile(path, os.O_CREATE|os.O_RDONLY, 0o600); err == nil {
			f.Close()
			// Without it the socket is missing, which the sensor says itself.
			_ = syscall.Mount("/proc/self/fd/"+strconv.Itoa(fd), path, "", syscall.MS_BIND, "")
		}
	}
}

func (k kept) close() {
	for _, fd := range k {
		syscall.Close(fd)
	}
}

// points are where something is mounted.
type points []string

func mountPoints() (p points) {
	b, err := os.ReadFile("/proc/thread-self/mountinfo")
	if err != nil {
		return points{"/"} // not known: below everything, as it were
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 4 {
			p = append(p, strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(f[4]))
		}
	}
	return p
}

// below reports whether something is mounted below dir: an overlay would lose it.
func (p points) below(dir string) bool {
	for _, at := range p {
		if strings.HasPrefix(at, dir+"/") {
			return true
		}
	}
	return false
}
