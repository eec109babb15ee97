// Package termbg keeps the program from asking the terminal for its background
// while packages initialise: bubbletea's init does so through lipgloss and waits
// up to 5 s for a terminal that does not answer. Giving lipgloss an answer first
// ends that. It works because Go initialises packages in the order of their
// paths as soon as what they import is ready, and this path sorts before
// github.com/charmbracelet. Nothing else belongs here, and lipgloss must stay
// the only import. Which background there is, tui/theme finds out.
package termbg

import "github.com/charmbracelet/lipgloss"

func init() { lipgloss.SetHasDarkBackground(true) }
