package rows

import (
	"fmt"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

func number(i int) string { return strconv.Itoa(i) }

// serve answers wants from a list of n rows that starts with its newest.
func serve(l *List[int], all []int, size int) {
	for range 100 {
		want := l.Want()
		if len(want) == 0 {
			return
		}
		for _, w := range want {
			from := 0
			if w.Token != "" {
				key, _ := strconv.Atoi(w.Token)
				from = slices.Index(all, key) + 1
			}
			to := min(len(all), from+size)
			next := ""
			if to < len(all) {
				next = number(all[to-1])
			}
			l.Put(w, slices.Clone(all[from:to]), next)
		}
	}
}

func down(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = n - 1 - i
	}
	return all
}

func shown(l *List[int]) string {
	b, _ := l.View(nil, func(dst []byte, row int, here, selected bool) []byte {
		if selected {
			dst = append(dst, '>')
		}
		if !here {
			return append(dst, '?')
		}
		return strconv.AppendInt(dst, int64(row), 10)
	})
	return string(b)
}

func TestPages(t *testing.T) {
	all := down(1000)
	l := New(number)
	l.Reset()
	l.Resize(3)
	serve(l, all, 10)
	if got := shown(l); got != ">999\n998\n997\n" {
		t.Fatalf("first: %q", got)
	}
	l.End()
	for !l.Complete() {
		serve(l, all, 10)
		l.End()
	}
	serve(l, all, 10)
	if got := shown(l); got != "2\n1\n>0\n" || l.Len() != 1000 {
		t.Errorf("end: %q of %d", got, l.Len())
	}
	here := 0
	for _, p := range l.pages {
		if p.rows != nil {
			here++
		}
	}
	if here > Keep {
		t.Errorf("%d pages are kept", here)
	}
	l.Move(-500)
	if got := shown(l); got != ">?\n?\n?\n" {
		t.Errorf("a dropped page: %q", got)
	}
	serve(l, all, 10)
	if got := shown(l); got != ">500\n499\n498\n" {
		t.Errorf("fetched again: %q", got)
	}
	// A page that does not come can be wanted again.
	l.Move(-300)
	w := l.Want()
	if len(w) == 0 || len(l.Want()) != 0 {
		t.Fatal("each page is wanted once")
	}
	for _, w := range w {
		l.Failed(w)
	}
	if len(l.Want()) != len(w) {
		t.Error("a failed page is not wanted again")
	}
	gen := l.Gen()
	l.Reset()
	l.Put(w[0], []int{1}, "")
	if l.Len() != 0 || l.Gen() == gen {
		t.Error("a page of an earlier reading was taken")
	}
}

func TestFreshNearTheTop(t *testing.T) {
	all := down(30)
	l := New(number)
	l.Reset()
	l.Resize(5)
	serve(l, all, 10)
	all = append([]int{31, 30}, all...)
	if !l.Fresh(slices.Clone(all[:10]), "x") || shown(l) != ">31\n30\n29\n28\n27\n" {
		t.Errorf("following: %q", shown(l))
	}
	l.Move(2)
	all = append([]int{32}, all...)
	l.Fresh(slices.Clone(all[:10]), "x")
	if got := shown(l); got != "31\n30\n>29\n28\n27\n" && got != "32\n31\n30\n>29\n28\n" {
		t.Errorf("stays on its row: %q", got)
	}
	// A row that is gone goes.
	l.Fresh([]int{32, 31, 29, 28, 27}, "")
	if got, _ := l.Selected(); got != 29 || l.Len() != 5 {
		t.Errorf("after a removal: %d of %d", got, l.Len())
	}
	l.Fresh(nil, "")
	if _, ok := l.Selected(); ok || l.Len() != 0 || shown(l) != "" {
		t.Error("an empty list has a row")
	}
}

func TestFreshDeepDown(t *testing.T) {
	all := down(100)
	l := New(number)
	l.Reset()
	l.Resize(3)
	serve(l, all, 10)
	for range 20 {
		l.Page(1)
		serve(l, all, 10)
	}
	before, _ := l.Selected()
	was := shown(l)
	all = append([]int{103, 102, 101, 100}, all...)
	if !l.Fresh(slices.Clone(all[:10]), "x") {
		t.Fatal("nothing is missing")
	}
	if after, _ := l.Selected(); after != before || shown(l) != was {
		t.Errorf("the window moved from %q to %q", was, shown(l))
	}
	l.Home()
	serve(l, all, 10)
	if got := shown(l); got != ">103\n102\n101\n" {
		t.Errorf("top: %q", got)
	}
	for range 20 {
		l.Page(1)
		serve(l, all, 10)
	}
	if l.Fresh([]int{999, 998}, "x") {
		t.Error("a gap was not noticed")
	}
}

func TestFollowsTheEnd(t *testing.T) {
	l := New(number)
	l.Resize(8)
	l.Span(20, 5, number)
	for _, w := range l.Want() {
		k, _ := strconv.Atoi(w.Token)
		l.Put(w, []int{5 * k, 5*k + 1, 5*k + 2, 5*k + 3, 5*k + 4}, "")
	}
	if got := shown(l); got != "12\n13\n14\n15\n16\n17\n18\n>19\n" {
		t.Fatalf("end: %q", got)
	}
	l.Grow(0, 20)
	if got := shown(l); got != "18\n19\n>20\n" {
		t.Errorf("a step of most of a page: %q", got)
	}
	off := l.Offset()
	l.Grow(0, 21, 22, 23, 24)
	if l.Offset() != off || l.Cursor() != 24 {
		t.Errorf("the window moved for every row: %d, %d", l.Offset(), l.Cursor())
	}
	l.Move(-1)
	l.Grow(0, 25, 26, 27, 28, 29, 30)
	if got, _ := l.Selected(); got != 23 || l.Following() {
		t.Errorf("the cursor left its row: %d", got)
	}
	l.End()
	if !l.Following() || l.Cursor() != 30 {
		t.Error("End does not follow")
	}
	l.Grow(3, 34)
	if l.Len() != 35 {
		t.Errorf("missed rows count: %d", l.Len())
	}
	want := l.Want()
	if len(want) == 0 {
		t.Error("a page with missing rows is not wanted")
	}
	for _, w := range want {
		k, _ := strconv.Atoi(w.Token)
		l.Put(w, []int{5 * k, 5*k + 1, 5*k + 2, 5*k + 3, 5*k + 4}, "")
	}
	if got, ok := l.Selected(); !ok || got != 34 {
		t.Errorf("selected %d, %v", got, ok)
	}
}

// Whatever is pressed and whatever arrives, the window shows the rows that a
// plain slice has there, and the cursor is in it.
func TestAgainstASlice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := down(rapid.IntRange(0, 60).Draw(t, "n"))
		newest := len(all)
		l := New(number)
		l.Reset()
		l.Resize(rapid.IntRange(1, 7).Draw(t, "h"))
		size := rapid.IntRange(1, 9).Draw(t, "size")
		serve(l, all, size)
		for range rapid.IntRange(0, 30).Draw(t, "steps") {
			before, had := l.Selected()
			moved := true
			switch rapid.IntRange(0, 6).Draw(t, "what") {
			case 0:
				l.Move(rapid.IntRange(-9, 9).Draw(t, "d"))
			case 1:
				l.Page(rapid.IntRange(-2, 2).Draw(t, "p"))
			case 2:
				l.Home()
			case 3:
				l.End()
			case 4:
				l.Resize(rapid.IntRange(0, 9).Draw(t, "h2"))
				moved = false
			default:
				k := rapid.IntRange(0, size).Draw(t, "new")
				for range k {
					all = append([]int{newest}, all...)
					newest++
				}
				moved = l.Following()
				to := min(size, len(all))
				next := ""
				if to < len(all) {
					next = number(all[to-1])
				}
				if !l.Fresh(slices.Clone(all[:to]), next) {
					l.Reset()
					moved = true
				}
			}
			serve(l, all, size)
			if after, ok := l.Selected(); !moved && had && ok && after != before {
				t.Fatalf("the cursor went from %d to %d", before, after)
			}
			if l.Len() > 0 && l.height > 0 && (l.Cursor() < l.Offset() || l.Cursor() >= l.Offset()+l.height) {
				t.Fatalf("cursor %d outside %d+%d", l.Cursor(), l.Offset(), l.height)
			}
			for i := l.Offset(); i < l.Offset()+l.height && i < l.Len(); i++ {
				if got, ok := l.At(i); !ok || got != all[i] {
					t.Fatalf("row %d is %d (%v), want %d", i, got, ok, all[i])
				}
			}
		}
	})
}

// What a screen of 160×48 costs does not depend on how long the list is.
func BenchmarkView(b *testing.B) {
	for _, n := range []int{100, 100_000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			l, draw := long(n)
			buf := make([]byte, 0, 64<<10)
			b.ReportAllocs()
			for b.Loop() {
				buf, _ = l.View(buf[:0], draw)
			}
		})
	}
}

type line struct{ id, text string }

func long(n int) (*List[line], func([]byte, line, bool, bool) []byte) {
	l := New(func(r line) string { return r.id })
	l.Resize(44)
	l.Span(n, 256, number)
	for _, w := range l.Want() {
		k, _ := strconv.Atoi(w.Token)
		var rows []line
		for i := 256 * k; i < min(n, 256*(k+1)); i++ {
			rows = append(rows, line{number(i), fmt.Sprintf("%08d  turn.opened  claude-code  shop  raise the upload limit to 25 MB %060d", i, i)})
		}
		l.Put(w, rows, "")
	}
	return l, func(dst []byte, r line, here, selected bool) []byte {
		if selected {
			dst = append(dst, "▸ "...)
		}
		return append(append(dst, r.id...), r.text...)
	}
}

func TestViewAllocates(t *testing.T) {
	for _, n := range []int{100, 1_000_000} {
		l, draw := long(n)
		if s, _ := l.Selected(); s.id != number(n-1) {
			t.Fatalf("%d rows end at %q", n, s.id)
		}
		buf := make([]byte, 0, 64<<10)
		if a := testing.AllocsPerRun(100, func() { buf, _ = l.View(buf[:0], draw) }); a > 2 {
			t.Errorf("%d rows: %.0f allocations a view", n, a)
		}
	}
}
