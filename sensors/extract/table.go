package extract

import (
	"encoding/csv"
	"strings"

	"gettier.dev/gettierd/sensors/spec"
)

// findTable reads the column of the rows whose other cells are as asked. The
// header is the first line that names every column; what kind of table it is
// follows from it: bars, tabs, commas, columns two spaces apart, plain words.
func findTable(t *spec.Table, d *document) found {
	for i, l := range d.lines {
		for _, split := range splitters {
			head := split(l.text)
			if head == nil {
				continue
			}
			if cols, ok := columns(head.cells, t); ok {
				return readRows(d.lines[i+1:], head, cols, t)
			}
		}
	}
	return found{}
}

// header is a split first line and how to split the rows below it. A nil row
// cannot be read.
type header struct {
	cells []string
	row   func(string) []string
}

// splitters in order of how sure they are.
var splitters = []func(string) *header{splitBars, splitTabs, splitCommas, splitWide, splitWords}

type chosen struct {
	column int
	where  map[int]string
}

// columns finds the wanted column and the conditions by name, exact before
// case-blind; a name that stands twice is not found.
func columns(cells []string, t *spec.Table) (chosen, bool) {
	at := func(name string) int {
		exact, fold, n := -1, -1, 0
		for i, c := range cells {
			if c == name {
				if exact >= 0 {
					return -1
				}
				exact = i
			}
			if strings.EqualFold(c, name) {
				fold, n = i, n+1
			}
		}
		if exact < 0 && n == 1 {
			return fold
		}
		return exact
	}
	c := chosen{column: at(t.Column), where: map[int]string{}}
	if c.column < 0 {
		return c, false
	}
	for name, want := range t.Where {
		i := at(name)
		if i < 0 {
			return c, false
		}
		c.where[i] = want
	}
	return c, true
}

func readRows(lines []line, h *header, c chosen, t *spec.Table) found {
	var f found
	for _, l := range lines {
		text := strings.TrimSpace(l.text)
		if text == "" {
			if len(f.matches) > 0 || f.unclear {
				break
			}
			continue
		}
		if strings.Trim(text, "-=+|─┼│├┤┌┐└┘┬┴╌ \t") == "" || strings.HasPrefix(text, "(") && strings.HasSuffix(text, ")") {
			continue
		}
		row := h.row(l.text)
		if row == nil {
			// It may be the row that was asked for, unless no condition's
			// value stands in it at all.
			f.unclear = f.unclear || mayHold(text, t.Where)
			continue
		}
		if !fits(row, c.where) || c.column >= len(row) {
			continue
		}
		f.matches = append(f.matches, match{row[c.column], l.place()})
		if len(f.matches) > maxMatches {
			break
		}
	}
	return f
}

func fits(row []string, where map[int]string) bool {
	for i, want := range where {
		if i >= len(row) || row[i] != want {
			return false
		}
	}
	return true
}

func mayHold(text string, where map[string]string) bool {
	for _, want := range where {
		if !strings.Contains(text, want) {
			return false
		}
	}
	return true
}

// splitBars reads psql's, mysql's and Markdown's tables.
func splitBars(s string) *header {
	if !strings.ContainsAny(s, "|│") {
		return nil
	}
	outer := strings.HasPrefix(strings.TrimSpace(s), "|") || strings.HasPrefix(strings.TrimSpace(s), "│")
	cut := func(s string) []string {
		s = strings.TrimSpace(strings.ReplaceAll(s, "│", "|"))
		if outer {
			s = strings.TrimSuffix(strings.TrimPrefix(s, "|"), "|")
		}
		return trimAll(strings.Split(s, "|"))
	}
	return exactRows(cut(s), cut)
}

func splitTabs(s string) *header {
	if !strings.Contains(s, "\t") {
		return nil
	}
	cut := func(s string) []string { return trimAll(strings.Split(s, "\t")) }
	return exactRows(cut(s), cut)
}

func splitCommas(s string) *header {
	if !strings.Contains(s, ",") {
		return nil
	}
	cut := func(s string) []string {
		r := csv.NewReader(strings.NewReader(s))
		r.LazyQuotes = false
		cells, err := r.Read()
		if err != nil {
			return nil
		}
		return trimAll(cells)
	}
	return exactRows(cut(s), cut)
}

// exactRows accepts rows with as many cells as the header.
func exactRows(head []string, cut func(string) []string) *header {
	if len(head) < 2 {
		return nil
	}
	return &header{head, func(s string) []string {
		if row := cut(s); len(row) == len(head) {
			return row
		}
		return nil
	}}
}

// splitWide reads columns that stand at least two spaces apart (docker ps):
// rows are cut where the header's columns begin, so cells may be empty, and a
// row whose text runs across such a place is not read.
func splitWide(s string) *header {
	cells, starts := wideCells(s)
	if len(cells) < 2 {
		return nil
	}
	return &header{cells, func(s string) []string {
		if row, _ := wideCells(s); len(row) == len(cells) {
			return row
		}
		runes := []rune(s)
		row := make([]string, len(starts))
		for i, start := range starts {
			end := len(runes)
			if i+1 < len(starts) {
				end = min(starts[i+1], end)
			}
			if start >= len(runes) {
				break
			}
			if start > 0 && runes[start-1] != ' ' {
				return nil
			}
			row[i] = strings.TrimSpace(string(runes[start:max(start, end)]))
		}
		return row
	}}
}

func wideCells(s string) (cells []string, starts []int) {
	runes := []rune(s)
	for i := 0; i < len(runes); {
		if runes[i] == ' ' {
			i++
			continue
		}
		j := i
		for j < len(runes) && !(runes[j] == ' ' && (j+1 == len(runes) || runes[j+1] == ' ')) {
			j++
		}
		cells, starts = append(cells, string(runes[i:j])), append(starts, i)
		i = j
	}
	return cells, starts
}

// splitWords reads ps and df: one word a cell, the last takes the rest. A row
// with fewer words is not read: which cell is empty cannot be told.
func splitWords(s string) *header {
	head := strings.Fields(s)
	if len(head) < 2 {
		return nil
	}
	if n := len(head); head[n-2] == "Mounted" && head[n-1] == "on" {
		head = append(head[:n-2:n-2], "Mounted on")
	}
	return &header{head, func(s string) []string {
		words := strings.Fields(s)
		if len(words) < len(head) {
			return nil
		}
		last := len(head) - 1
		return append(words[:last:last], strings.Join(words[last:], " "))
	}}
}

func trimAll(cells []string) []string {
	for i, c := range cells {
		cells[i] = strings.TrimSpace(c)
	}
	return cells
}
