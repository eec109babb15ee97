package verify

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// errFile is wrapped when the container itself is not as it must be.
var errFile = errors.New("cannot be read")

// errAbsent says that a file is not where it must be.
var errAbsent = errors.New("the file is missing")

// container gives files out in the one order that an export has.
type container interface {
	// get returns the content of the named file, which must be the next one.
	get(name string, atMost int64) ([]byte, error)
	// blob returns the next file, when it is a blob; "" at the end.
	blob(atMost int64) (name string, content []byte, err error)
	// rest lists files that nobody asked for.
	rest() ([]string, error)
}

// folder is an export as a directory.
type folder struct {
	root  *os.Root
	asked map[string]bool
	blobs []string
	ready bool
}

func (d *folder) get(name string, atMost int64) ([]byte, error) {
	d.asked[name] = true
	st, err := d.root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errAbsent
	}
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() || st.Size() > atMost {
		return nil, fmt.Errorf("%w: no regular file of at most %d bytes", errFile, atMost)
	}
	return d.root.ReadFile(name)
}

func (d *folder) blob(atMost int64) (string, []byte, error) {
	if !d.ready {
		d.ready = true
		all, err := fs.ReadDir(d.root.FS(), "blobs")
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", nil, err
		}
		for _, e := range all { // sorted by name
			d.blobs = append(d.blobs, "blobs/"+e.Name())
		}
	}
	if len(d.blobs) == 0 {
		return "", nil, nil
	}
	name := d.blobs[0]
	d.blobs = d.blobs[1:]
	content, err := d.get(name, atMost)
	return name, content, err
}

func (d *folder) rest() (names []string, err error) {
	err = fs.WalkDir(d.root.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && !d.asked[name] {
			names = append(names, name)
		}
		return err
	})
	slices.Sort(names)
	return names, err
}

// tape is an export as a tar, read once from front to back.
type tape struct {
	in   *bufio.Reader
	name string // of the file to come, when it is known
	size int64
	over bool
}

const sector = 512

// peek reads the header of the file to come. A header holds nothing that does
// not follow from name and size.
func (t *tape) peek() error {
	if t.name != "" || t.over {
		return nil
	}
	head := make([]byte, sector)
	if _, err := io.ReadFull(t.in, head); err != nil {
		return fmt.Errorf("%w: the tar is cut off", errFile)
	}
	if head[0] == 0 {
		tail, err := io.ReadAll(io.LimitReader(t.in, 2*sector))
		if err != nil {
			return err
		}
		if len(tail) != sector || len(bytes.Trim(append(head, tail...), "\x00")) > 0 {
			return fmt.Errorf("%w: the tar does not end in two empty blocks", errFile)
		}
		t.over = true
		return nil
	}
	name, _, _ := bytes.Cut(head[:100], []byte{0})
	var size int64
	for _, c := range head[124:135] {
		if c < '0' || c > '7' {
			return fmt.Errorf("%w: a header of the tar", errFile)
		}
		size = size<<3 | int64(c-'0')
	}
	if !bytes.Equal(head, headerOf(string(name), size)) {
		return fmt.Errorf("%w: a header of the tar", errFile)
	}
	t.name, t.size = string(name), size
	return nil
}

func headerOf(name string, size int64) []byte {
	const none = "0000000\x00"
	field := func(s string, n int) string { return s + strings.Repeat("\x00", max(0, n-len(s))) }
	make := func(sum string) []byte {
		return []byte(field(field(name, 100)+"0000644\x00"+none+none+fmt.Sprintf("%011o\x00", size)+"00000000000\x00"+sum+"0"+
			field("", 100)+"ustar\x0000"+field("", 64)+none+none, sector))
	}
	sum := 0
	for _, c := range make("        ") {
		sum += int(c)
	}
	return make(fmt.Sprintf("%06o\x00 ", sum))
}

func (t *tape) content(atMost int64) ([]byte, error) {
	size := t.size
	t.name = ""
	if size > atMost {
		return nil, fmt.Errorf("%w: it has %d bytes", errFile, size)
	}
	padded := make([]byte, (size+sector-1)/sector*sector)
	if _, err := io.ReadFull(t.in, padded); err != nil {
		return nil, fmt.Errorf("%w: the tar is cut off", errFile)
	}
	if len(bytes.Trim(padded[size:], "\x00")) > 0 {
		return nil, fmt.Errorf("%w: padding of the tar holds bytes", errFile)
	}
	return padded[:size:size], nil
}

func (t *tape) get(name string, atMost int64) ([]byte, error) {
	if err := t.peek(); err != nil {
		return nil, err
	}
	if t.over || t.name != name {
		return nil, errAbsent
	}
	return t.content(atMost)
}

func (t *tape) blob(atMost int64) (string, []byte, error) {
	if err := t.peek(); err != nil || t.over || !strings.HasPrefix(t.name, "blobs/") {
		return "", nil, err
	}
	name := t.name
	content, err := t.content(atMost)
	return name, content, err
}

func (t *tape) rest() ([]string, error) {
	if err := t.peek(); err != nil || t.over {
		return nil, err
	}
	return []string{t.name}, nil
}

// names of the tiles of C2SP tlog-tiles.
func tileName(kind string, n uint64, width int) string {
	path := fmt.Sprintf("%03d", n%1000)
	for n /= 1000; n > 0; n /= 1000 {
		path = fmt.Sprintf("x%03d/", n%1000) + path
	}
	if width < 256 {
		path += fmt.Sprintf(".p/%d", width)
	}
	return "tile/" + kind + "/" + path
}
