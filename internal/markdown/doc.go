// Package markdown lays the agent's Markdown out for a terminal: wrapped at its
// width, with colours that fit dark and light backgrounds alike. Text comes in
// pieces as it arrives and goes out by whole blocks. It writes nothing and asks
// no terminal anything; format calls it.
//
// The parser is goldmark's. Of glamour, which is built on it, nothing is used:
// it brings two hundred lexers and styles that are loaded when the program
// starts, thirteen milliseconds in every run of whatever format, and in the
// guard once more.
package markdown
