package archive

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
)

const block = 512

// maxFile is what the eleven octal digits of a header can say.
const maxFile = 1<<33 - 1

// Writer packs files into a tar whose bytes follow from the files alone: plain
// ustar headers, mode 0644, no owner, time zero.
type Writer struct {
	w    *bufio.Writer
	last place
	some bool
	err  error
}

// NewWriter packs into w.
func NewWriter(w io.Writer) *Writer { return &Writer{w: bufio.NewWriterSize(w, 64<<10)} }

// Put adds a file. Files must come in the archive's order.
func (w *Writer) Put(name string, data []byte) error {
	return w.PutFrom(name, int64(len(data)), bytes.NewReader(data))
}

// PutFrom adds a file of size bytes from r.
func (w *Writer) PutFrom(name string, size int64, r io.Reader) error {
	if w.err != nil {
		return w.err
	}
	w.err = w.put(name, size, r)
	return w.err
}

func (w *Writer) put(name string, size int64, r io.Reader) error {
	p := placeOf(name)
	if p.class == classUnknown || w.some && p.compare(w.last) <= 0 {
		return fmt.Errorf("pack %s: %w: it does not belong there", name, ErrFormat)
	}
	w.last, w.some = p, true
	h, err := header(name, size)
	if err != nil {
		return err
	}
	if _, err := w.w.Write(h); err != nil {
		return err
	}
	n, err := io.Copy(w.w, io.LimitReader(r, size))
	if err == nil && n != size {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return fmt.Errorf("pack %s: %w", name, err)
	}
	_, err = w.w.Write(make([]byte, padding(size)))
	return err
}

// Close writes the end. It does not close what is below.
func (w *Writer) Close() error {
	if w.err != nil {
		return w.err
	}
	if _, err := w.w.Write(make([]byte, 2*block)); err != nil {
		return err
	}
	return w.w.Flush()
}

func padding(size int64) int64 { return (block - size%block) % block }

func header(name string, size int64) ([]byte, error) {
	if len(name) > 100 || size < 0 || size > maxFile {
		return nil, fmt.Errorf("pack %.120s: %w: %d bytes under this name do not fit", name, ErrFormat, size)
	}
	h := make([]byte, block)
	put := func(at int, s string) { copy(h[at:], s) }
	put(0, name)
	put(100, "0000644\x00")
	put(108, "0000000\x000000000\x00")
	put(124, fmt.Sprintf("%011o\x00", size))
	put(136, "00000000000\x00        0") // time, room for the sum, a regular file
	put(257, "ustar\x0000")
	put(329, "0000000\x000000000\x00")
	sum := 0
	for _, c := range h {
		sum += int(c)
	}
	put(148, fmt.Sprintf("%06o\x00 ", sum))
	return h, nil
}

// tarReader reads what Writer wrote, and refuses every other byte: a header must
// be the one that its own name and size make.
type tarReader struct {
	r    *bufio.Reader
	left int64 // of the current file
	pad  int64
}

func newTarReader(r io.Reader) *tarReader { return &tarReader{r: bufio.NewReaderSize(r, 64<<10)} }

func (t *tarReader) Next() (*File, error) {
	if _, err := io.Copy(io.Discard, (*tarFile)(t)); err != nil {
		return nil, err
	}
	h := make([]byte, block)
	if _, err := io.ReadFull(t.r, h); err != nil {
		return nil, cut(err)
	}
	if h[0] == 0 {
		end := make([]byte, block)
		if _, err := io.ReadFull(t.r, end); err != nil {
			return nil, cut(err)
		}
		if _, err := t.r.ReadByte(); !errors.Is(err, io.EOF) || !zero(h) || !zero(end) {
			return nil, fmt.Errorf("read tar: %w: the end is not two empty blocks", ErrFormat)
		}
		return nil, io.EOF
	}
	name, _, _ := bytes.Cut(h[:100], []byte{0})
	size, err := strconv.ParseInt(string(h[124:135]), 8, 64)
	if err != nil {
		return nil, fmt.Errorf("read tar: %w: header of %.100q", ErrFormat, name)
	}
	if want, err := header(string(name), size); err != nil || !bytes.Equal(h, want) {
		return nil, fmt.Errorf("read tar: %w: header of %.100q", ErrFormat, name)
	}
	t.left, t.pad = size, padding(size)
	return &File{Name: string(name), Size: size, Reader: (*tarFile)(t)}, nil
}

func zero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

// cut: a tar that ends early has no end of its own.
func cut(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("read tar: %w: it is cut off", ErrFormat)
	}
	return fmt.Errorf("read tar: %w", err)
}

type tarFile tarReader

func (f *tarFile) Read(b []byte) (int, error) {
	if f.left == 0 {
		pad := make([]byte, f.pad)
		if _, err := io.ReadFull(f.r, pad); err != nil {
			return 0, cut(err)
		}
		if f.pad = 0; !zero(pad) {
			return 0, fmt.Errorf("read tar: %w: padding holds bytes", ErrFormat)
		}
		return 0, io.EOF
	}
	n, err := f.r.Read(b[:min(int64(len(b)), f.left)])
	f.left -= int64(n)
	if err != nil && f.left > 0 {
		return n, cut(err)
	}
	return n, nil
}
