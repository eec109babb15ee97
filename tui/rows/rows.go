// Package rows is a window on a list that may be far too long to hold: rows are
// fetched page by page, only pages near the cursor are kept, and what it costs
// to draw depends on the height of the window alone. It knows positions and
// keys, not what a row says, and it fetches nothing itself: it names the pages
// it misses and takes them when they come.
package rows

import (
	"slices"
)

// Keep is how many pages stay in memory.
const Keep = 8

// List is a window on rows of type T. A list either starts with its newest row
// and is fetched page after page (Reset, Want, Put), or is counted from the
// first row on and grows at its end (Span, Grow).
type List[T any] struct {
	key   func(T) string
	top   []T // landed before the first page since it was read, newest last
	pages []page[T]
	total int // rows of all pages

	next  string // token of the page after the last one
	open  bool   // there is one
	asked bool   // for it

	cur, off, height int
	follow           bool // the cursor stays on the newest row
	tail             bool // the newest row is the last
	gen              uint64
	size             int
	token            func(page int) string
}

type page[T any] struct {
	token string
	start int // rows before it, those of top not counted
	n     int
	rows  []T // nil when it is not here
	asked bool
}

// Want is a page to fetch. Gen and Page come back with it.
type Want struct {
	Gen   uint64
	Page  int
	Token string // "" is the first page
}

// New makes an empty list; key names a row for ever.
func New[T any](key func(T) string) *List[T] {
	return &List[T]{key: key, follow: true}
}

// Reset forgets every row: the list is read anew from its first page. Pages
// that are still on their way no longer count.
func (l *List[T]) Reset() {
	l.gen++
	l.top, l.pages, l.total = nil, nil, 0
	l.next, l.open, l.asked = "", true, false
	l.cur, l.off, l.follow, l.tail = 0, 0, true, false
	l.token = nil
}

// Span makes a list of n rows in pages of size, counted from the first; token
// names a page. The cursor follows the end.
func (l *List[T]) Span(n, size int, token func(page int) string) {
	l.Reset()
	l.open, l.tail, l.size, l.token = false, true, size, token
	l.extend(n)
	l.End()
}

// extend adds n rows that are not here yet to the end.
func (l *List[T]) extend(n int) {
	for n > 0 {
		if k := len(l.pages); k == 0 || l.pages[k-1].n == l.size {
			l.pages = append(l.pages, page[T]{token: l.token(k), start: l.total})
		}
		p := &l.pages[len(l.pages)-1]
		more := min(n, l.size-p.n)
		p.n += more
		l.total += more
		n -= more
	}
}

// Grow adds rows to the end of a spanned list. missed rows before them were
// counted but not kept.
func (l *List[T]) Grow(missed int, rows ...T) {
	if l.token == nil {
		return
	}
	l.extend(missed)
	for len(rows) > 0 {
		if k := len(l.pages); k == 0 || l.pages[k-1].n == l.size {
			l.pages = append(l.pages, page[T]{token: l.token(k), start: l.total, rows: make([]T, 0, l.size)})
		}
		p := &l.pages[len(l.pages)-1]
		some := rows[:min(len(rows), l.size-p.n)]
		// A page of which only the beginning is missing is fetched as a whole.
		if p.rows != nil && len(p.rows) == p.n {
			p.rows = append(p.rows, some...)
		} else {
			p.rows, p.asked = nil, false
		}
		p.n += len(some)
		l.total += len(some)
		rows = rows[len(some):]
	}
	if l.follow {
		l.last()
	}
	l.forget()
}

// Len is how many rows are known of.
func (l *List[T]) Len() int { return len(l.top) + l.total }

// Complete reports whether Len counts all rows there are.
func (l *List[T]) Complete() bool { return !l.open }

// Gen changes when the list is read anew.
func (l *List[T]) Gen() uint64 { return l.gen }

// At returns row i, if it is here.
func (l *List[T]) At(i int) (row T, ok bool) {
	if i < 0 {
		return row, false
	}
	if i < len(l.top) {
		return l.top[len(l.top)-1-i], true
	}
	i -= len(l.top)
	k := l.pageOf(i)
	if k < 0 {
		return row, false
	}
	p := &l.pages[k]
	if i -= p.start; i >= len(p.rows) {
		return row, false
	}
	return p.rows[i], true
}

// pageOf finds the page of a row, -1 when it is beyond the last.
func (l *List[T]) pageOf(i int) int {
	if i < 0 || i >= l.total {
		return -1
	}
	k, found := slices.BinarySearchFunc(l.pages, i, func(p page[T], i int) int { return p.start - i })
	if !found {
		k--
	}
	// Pages that came back empty share their start with the next one.
	for k+1 < len(l.pages) && l.pages[k].n == 0 {
		k++
	}
	return k
}

// Selected is the row under the cursor.
func (l *List[T]) Selected() (T, bool) { return l.At(l.cur) }

// Cursor is the number of the selected row, Offset that of the first row shown.
func (l *List[T]) Cursor() int { return l.cur }

// Offset is the number of the first row shown.
func (l *List[T]) Offset() int { return l.off }

// Following reports whether the cursor stays on the newest row.
func (l *List[T]) Following() bool { return l.follow }

// Want names the pages that the window, and a person who goes on in the same
// direction, will need. They count as asked for until Put or Failed.
func (l *List[T]) Want() []Want {
	if l.height == 0 {
		return nil
	}
	var out []Want
	from, to := l.near()
	first := l.pageOf(max(0, min(from, l.total-1)))
	for k := max(first, 0); k < len(l.pages) && l.pages[k].start < to; k++ {
		if p := &l.pages[k]; p.rows == nil && !p.asked {
			p.asked = true
			out = append(out, Want{l.gen, k, p.token})
		}
	}
	if l.open && !l.asked && to >= l.total {
		l.asked = true
		out = append(out, Want{l.gen, len(l.pages), l.next})
	}
	return out
}

// near is the rows of the pages that are needed: the window, and one more in
// either direction.
func (l *List[T]) near() (from, to int) {
	at := l.off - len(l.top)
	return at - l.height, at + 2*l.height
}

// Put takes a page that was wanted; next is the token of the page after it, ""
// when it is the last. Pages of an earlier reading are dropped.
func (l *List[T]) Put(w Want, rows []T, next string) {
	if w.Gen != l.gen || w.Page > len(l.pages) {
		return
	}
	if rows == nil {
		rows = []T{}
	}
	if w.Page == len(l.pages) {
		if l.token != nil {
			return
		}
		l.pages = append(l.pages, page[T]{token: w.Token, start: l.total, n: len(rows), rows: rows})
		l.total += len(rows)
		l.next, l.open, l.asked = next, next != "", false
	} else {
		p := &l.pages[w.Page]
		p.asked = false
		if l.token != nil {
			if len(rows) < p.n { // it grew while it was on its way
				p.rows = nil
				return
			}
			p.rows = rows[:p.n:p.n]
		} else {
			l.total += len(rows) - p.n
			p.rows, p.n = rows, len(rows)
			for k := w.Page + 1; k < len(l.pages); k++ {
				l.pages[k].start = l.pages[k-1].start + l.pages[k-1].n
			}
		}
	}
	l.forget()
	l.clamp()
}

// Failed says that a page did not come: it may be wanted again.
func (l *List[T]) Failed(w Want) {
	switch {
	case w.Gen != l.gen:
	case w.Page == len(l.pages):
		l.asked = false
	case w.Page < len(l.pages):
		l.pages[w.Page].asked = false
	}
}

// forget drops the pages farthest from the window, and none that it needs. The
// first page of a list that starts with its newest row stays: its token would
// bring other rows by now.
func (l *List[T]) forget() {
	here := 0
	from, to := l.near()
	for k := range l.pages {
		if l.pages[k].rows != nil {
			here++
		}
	}
	for mid := max(0, l.pageOf(min(max(l.off-len(l.top), 0), max(l.total-1, 0)))); here > Keep; here-- {
		far, first := -1, 0
		if l.token == nil {
			first = 1
		}
		for k := first; k < len(l.pages); k++ {
			p := &l.pages[k]
			if p.rows != nil && (p.start >= to || p.start+p.n <= from) && (far < 0 || dist(k, mid) > dist(far, mid)) {
				far = k
			}
		}
		if far < 0 {
			return
		}
		l.pages[far].rows, l.pages[far].asked = nil, false
	}
}

func dist(a, b int) int {
	if a < b {
		return b - a
	}
	return a - b
}

// Fresh takes the first page as it is now. Where the window shows no more than
// that, the list becomes this page; deeper down, what is new lands on top and
// what changed is replaced. The cursor stays on its row, or at the top while it
// follows. It reports false when rows between are missing: read the list anew.
func (l *List[T]) Fresh(rows []T, next string) bool {
	if l.token != nil {
		return true
	}
	at := make(map[string]int, len(rows))
	for i, r := range rows {
		at[l.key(r)] = i
	}
	deepest := len(l.top)
	if len(l.pages) > 0 {
		deepest += l.pages[0].n
	}
	was, ok := l.Selected()
	stays := true // the selected row is in this page, or is gone
	if ok && !l.follow && next != "" {
		_, stays = at[l.key(was)]
	}
	if stays && (len(l.pages) <= 1 || l.cur < min(deepest, len(rows)) && l.off+l.height <= len(rows)) {
		line := l.cur - l.off
		l.gen++
		l.top = nil
		l.pages = []page[T]{{n: len(rows), rows: rows}}
		l.total, l.next, l.open, l.asked = len(rows), next, next != "", false
		if l.follow {
			l.cur, l.off = 0, 0
		} else if ok {
			if i, found := at[l.key(was)]; found {
				l.cur, l.off = i, max(0, i-line)
			}
		}
		l.clamp()
		return true
	}
	known := len(rows) // newest row that was here
	for i := range l.top {
		if j, ok := at[l.key(l.top[i])]; ok {
			l.top[i] = rows[j]
			known = min(j, known)
		}
	}
	for k := range l.pages {
		for i := range l.pages[k].rows {
			if j, ok := at[l.key(l.pages[k].rows[i])]; ok {
				l.pages[k].rows[i] = rows[j]
				known = min(j, known)
			}
		}
	}
	if known == len(rows) {
		return known == 0
	}
	for i := known - 1; i >= 0; i-- {
		l.top = append(l.top, rows[i])
	}
	if l.follow {
		l.cur, l.off = 0, 0
	} else {
		l.cur += known
		l.off += known
	}
	return len(l.top) <= Keep*max(len(rows), 1)
}

// Replace puts row where the one with its key is, if that is here.
func (l *List[T]) Replace(row T) {
	key := l.key(row)
	for i := range l.top {
		if l.key(l.top[i]) == key {
			l.top[i] = row
			return
		}
	}
	for k := range l.pages {
		for i := range l.pages[k].rows {
			if l.key(l.pages[k].rows[i]) == key {
				l.pages[k].rows[i] = row
				return
			}
		}
	}
}

// Select moves the cursor to the row with this key, if it is here.
func (l *List[T]) Select(key string) bool {
	for i := range l.top {
		if l.key(l.top[i]) == key {
			l.Move(len(l.top) - 1 - i - l.cur)
			return true
		}
	}
	for k := range l.pages {
		for i := range l.pages[k].rows {
			if l.key(l.pages[k].rows[i]) == key {
				l.Move(len(l.top) + l.pages[k].start + i - l.cur)
				return true
			}
		}
	}
	return false
}

// Move moves the cursor by d rows. It then stays on its row while others arrive.
func (l *List[T]) Move(d int) {
	l.cur += d
	l.clamp()
	l.follow = l.tail && l.cur == l.Len()-1 && d > 0
}

// Page moves the cursor by d windows.
func (l *List[T]) Page(d int) { l.Move(d * max(1, l.height-1)) }

// Home moves the cursor to the first row; in a list that starts with its newest
// it stays at the top from then on.
func (l *List[T]) Home() {
	l.cur, l.off, l.follow = 0, 0, !l.tail
}

// End moves the cursor to the last row known; in a list whose newest row is the
// last it stays at the end from then on.
func (l *List[T]) End() {
	l.follow = l.tail
	l.cur = max(0, l.Len()-1)
	l.clamp()
}

// last follows the end. The window goes on by most of a page, not row by row,
// so that between two such steps only new rows are drawn.
func (l *List[T]) last() {
	l.cur = max(0, l.Len()-1)
	if h := max(1, l.height); l.cur >= l.off+h {
		l.off = max(0, l.cur-h/4)
	}
}

// clamp keeps the cursor on a row and in the window.
func (l *List[T]) clamp() {
	n := l.Len()
	l.cur = max(0, min(l.cur, n-1))
	h := max(1, l.height)
	switch {
	case l.cur < l.off:
		l.off = l.cur
	case l.cur >= l.off+h:
		l.off = l.cur - h + 1
	}
	if !l.follow || !l.tail {
		l.off = max(0, min(l.off, n-h))
	}
}

// Resize says how many rows the window shows.
func (l *List[T]) Resize(height int) {
	if height = max(0, height); height == l.height {
		return
	}
	l.height = height
	l.clamp()
}

// View appends the window's rows to dst, each drawn by draw and ended by a new
// line, and returns how many. draw gets false for a row that is not here yet.
func (l *List[T]) View(dst []byte, draw func(dst []byte, row T, here, selected bool) []byte) ([]byte, int) {
	shown := 0
	for i := l.off; i < l.off+l.height && i < l.Len(); i++ {
		row, here := l.At(i)
		dst = append(draw(dst, row, here, i == l.cur), '\n')
		shown++
	}
	return dst, shown
}
