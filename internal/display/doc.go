// Package display makes text that others wrote fit to be shown: it takes away
// what could repaint, rename or confuse a terminal, measures in columns and
// cuts between the characters that a reader sees. It knows no terminal and
// writes nothing; format and markdown call it.
package display
