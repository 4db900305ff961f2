package report

import (
	"crypto/sha256"
	_ "embed" // the style sheet and the scripts
	"encoding/base64"
	"io"
	"strings"
)

// The files of the page. It says all that it has to say without a script; what
// the scripts add is zoom, the panel with the raw events, the keys and the
// sorting.
var (
	//go:embed page/page.css
	styleSheet string
	//go:embed page/theme.js
	themeScript string // before the first paint
	//go:embed page/page.js
	pageScript string
)

// page is a Story as it is laid out.
type page struct {
	*Story
	axis
}

// HTML writes the story as one page that needs nothing but itself: no network,
// no other file. What others wrote stands in it as text only, and the policy in
// its head forbids the browser whatever is not ours.
func HTML(w io.Writer, s *Story) error {
	p := &page{Story: s, axis: newAxis(s)}
	return writeTo(w, parts{
		verbatim("<!DOCTYPE html>\n"),
		el("html", attr{"lang", "en"}, p.head(), verbatim("\n"), p.body()),
		verbatim("\n"),
	})
}

func (p *page) head() part {
	return el("head",
		el("meta", attr{"charset", "utf-8"}),
		el("meta", attr{"http-equiv", "Content-Security-Policy"}, attr{"content", policy()}),
		el("meta", attr{"name", "viewport"}, attr{"content", "width=device-width, initial-scale=1"}),
		el("meta", attr{"name", "color-scheme"}, attr{"content", "light dark"}),
		el("meta", attr{"name", "referrer"}, attr{"content", "no-referrer"}),
		el("link", attr{"rel", "icon"}, attr{"href", "data:,"}), // or it would be asked for
		el("title", textf("%s: %s", p.outcome(), short(p.Run.ID, 40))),
		el("style", verbatim(styleSheet)),
		el("script", verbatim(themeScript)),
	)
}

// policy allows the browser our own style and scripts, by their hashes, and
// nothing else: no loading, no connecting, no script that somebody smuggled in.
func policy() string {
	return strings.Join([]string{
		"default-src 'none'",
		"style-src " + hash(styleSheet),
		"script-src " + hash(themeScript) + " " + hash(pageScript),
		"img-src data:",
		"base-uri 'none'",
		"form-action 'none'",
	}, "; ")
}

func hash(file string) string {
	sum := sha256.Sum256([]byte(file))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

func (p *page) body() part {
	sections := p.sections()
	main := el("main", id("main"), attr{"tabindex", "-1"}, p.hero(), p.notices(), p.tiles())
	for _, s := range sections {
		main.inner = append(main.inner, s.part())
	}
	return el("body",
		el("a", class("skip"), attr{"href", "#main"}, text("Skip to the report")),
		top(sections), main, p.foot(), panel(),
		p.chart(), p.things(), p.events(),
		el("script", verbatim(pageScript)),
	)
}

// section is a part of the page with a heading and a link to it.
type section struct {
	id, title string
	inner     part
}

func (s section) part() part {
	return el("section", id(s.id), attr{"aria-labelledby", s.id + "-title"},
		el("h2", id(s.id+"-title"), text(s.title)), s.inner)
}

// sections are those that have something to say.
func (p *page) sections() []section {
	all := []section{
		{"timeline", "Timeline", p.timeline()},
		{"verdict", "Why", p.verdictPart()},
		{"answer", "Answer", p.answer()},
		{"calls", "Slowest calls", p.calls()},
		{"turns", "Turns", p.turnTable()},
		{"teardown", "Teardown", p.teardown()},
		{"stderr", "End of stderr", p.stderr()},
		{"run", "The run", p.facts()},
	}
	kept := all[:0]
	for _, s := range all {
		if s.inner != nil {
			kept = append(kept, s)
		}
	}
	return kept
}

func top(sections []section) part {
	links := el("nav", attr{"aria-label", "Parts of the report"})
	for _, s := range sections {
		links.inner = append(links.inner, el("a", attr{"href", "#" + s.id}, text(s.title)))
	}
	return el("header", class("top"),
		el("span", class("brand"), text("cursor-wrap report")),
		links,
		el("button", id("theme"), class("scripted"), attr{"type", "button"}, text("Theme: system")),
	)
}

func (p *page) foot() part {
	return el("footer",
		textf("Times are UTC. Made from the log of run %s by cursor-wrap", p.Run.ID),
		when(p.Run.Version != "", textf(" %s", p.Run.Version)), text("."),
		el("noscript", text(" Without scripts the page shows everything but the raw events behind an item.")),
	)
}

// panel is where the script shows what is behind an item.
func panel() part {
	button := func(name, label, content string) part {
		return el("button", id(name), attr{"type", "button"}, attr{"aria-label", label}, text(content))
	}
	return el("dialog", id("panel"), attr{"aria-labelledby", "panel-title"},
		el("div", class("panel-head"),
			el("div", el("p", id("panel-kind"), class("kind")), el("h2", id("panel-title"), attr{"tabindex", "-1"})),
			button("panel-close", "Close", "✕"),
		),
		el("div", class("panel-body"),
			el("dl", id("panel-facts"), class("facts")),
			el("pre", id("panel-text"), attr{"tabindex", "0"}),
			el("div", id("panel-members")),
			el("div", id("panel-events"),
				el("div", class("bar-row"),
					button("event-previous", "Previous event", "‹"),
					button("event-next", "Next event", "›"),
					el("span", id("event-place"), attr{"role", "status"}),
					el("label", el("input", id("event-raw"), attr{"type", "checkbox"}), text(" as it came")),
					el("label", el("input", id("event-all"), attr{"type", "checkbox"}), text(" whole stream")),
				),
				el("p", id("event-name")),
				el("p", id("event-more"), class("notice")),
				el("pre", id("event-text"), attr{"tabindex", "0"}, attr{"aria-label", "Event"}),
			),
		),
	)
}
