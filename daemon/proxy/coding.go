package proxy

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// maxCodings is how many codings one body may be wrapped in.
const maxCodings = 2

// zstdWindow is the largest window that a zstd content coding may ask for, in
// bytes (RFC 9659).
const zstdWindow = 8 << 20

// errCoding is a Content-Encoding that nothing here reads.
var errCoding = errors.New("unknown Content-Encoding")

// codings lists what a body with these headers is wrapped in, outermost first.
// Identity is no coding.
func codings(h http.Header) ([]string, error) {
	var list []string
	for _, line := range h["Content-Encoding"] {
		for c := range strings.SplitSeq(line, ",") {
			switch c = strings.ToLower(strings.TrimSpace(c)); c {
			case "", "identity":
			case "x-gzip":
				list = append(list, "gzip")
			case "gzip", "zstd", "br":
				list = append(list, c)
			default:
				return nil, fmt.Errorf("%w %.32q: gzip, zstd, br and identity are read", errCoding, c)
			}
		}
	}
	if len(list) > maxCodings {
		return nil, fmt.Errorf("%w: %d codings around each other, %d are read", errCoding, len(list), maxCodings)
	}
	for i, j := 0, len(list)-1; i < j; i, j = i+1, j-1 {
		list[i], list[j] = list[j], list[i]
	}
	return list, nil
}

// decoded is a body without its codings. A coding's header is read with the
// first bytes, not before: a call returns as soon as the headers are there.
type decoded struct {
	body    io.ReadCloser
	codings []string
	plain   io.Reader
	zstds   []*zstd.Decoder
}

func (d *decoded) Read(b []byte) (int, error) {
	if d.plain == nil {
		if err := d.open(); err != nil {
			return 0, err
		}
	}
	return d.plain.Read(b)
}

func (d *decoded) open() error {
	r := io.Reader(d.body)
	for _, c := range d.codings {
		switch c {
		case "gzip":
			z, err := gzip.NewReader(r)
			if err != nil {
				return fmt.Errorf("read gzip: %w", err)
			}
			r = z
		case "br":
			r = brotli.NewReader(r)
		case "zstd":
			z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(zstdWindow))
			if err != nil {
				return fmt.Errorf("read zstd: %w", err)
			}
			d.zstds = append(d.zstds, z)
			r = z
		}
	}
	d.plain = r
	return nil
}

func (d *decoded) Close() error {
	for _, z := range d.zstds {
		z.Close()
	}
	return d.body.Close()
}
