package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// The page is opened in a real browser here. A script of the test stands at its
// end, uses it as a person would and posts what it saw.

func browser(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("no chromium, chromium-browser or google-chrome here to open the page in")
	return ""
}

// watching stands before everything else in the page.
const watching = `window.complaints = [];
const complain = (what) => complaints.push(String(what));
addEventListener("error", (e) => complain(e.message || e.target));
addEventListener("unhandledrejection", (e) => complain(e.reason));
addEventListener("securitypolicyviolation", (e) => complain("policy: " + e.violatedDirective + " " + e.blockedURI));
for (const level of ["error", "warn"]) console[level] = complain;
window.alert = () => { window.pwned = 1; };`

// driving is what the scripts of the tests are made of. until waits for a fact.
const driving = `(async () => {
const $ = (id) => document.getElementById(id);
const until = async (fact) => {
  for (const end = Date.now() + 60_000; Date.now() < end;) {
    const v = fact();
    if (v) return v;
    await new Promise((r) => setTimeout(r, 5));
  }
  throw new Error("it never came: " + fact);
};
const press = (key) => document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
const eventShown = () => until(() => !$("panel-events").hidden && $("event-text").textContent);
const closePanel = async () => { $("panel-close").click(); await until(() => !$("panel").open); };
let saw;
try { saw = await (async () => { %s })(); } catch (e) { saw = { threw: String(e) }; }
await fetch("/result", { method: "POST", body: JSON.stringify({ ...saw, complaints, pwned: !!window.pwned }) });
})();`

// browsed is what a page's script posts.
type browsed map[string]any

// browse opens a page, runs the script in it and returns what it posts. Without
// the policy only the escaping stands between the text and the browser.
func browse(t *testing.T, page, script string, policed bool) browsed {
	t.Helper()
	browser(t)
	script = fmt.Sprintf(driving, script)
	if policed {
		page = strings.Replace(page, escaped(hash(pageScript)), escaped(hash(pageScript)+" "+hash(watching)+" "+hash(script)+"; connect-src 'self'"), 1)
	} else {
		page = strings.Replace(page, "Content-Security-Policy", "None", 1)
	}
	page = strings.Replace(page, "<title>", "<script>"+watching+"</script><title>", 1)
	page = strings.Replace(page, "</body></html>", "<script>"+script+"</script></body></html>", 1)

	posted := make(chan []byte, 1)
	var once sync.Once
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/":
			w.Header().Set("Content-Type", "text/html")
			io.WriteString(w, page)
		case "/result":
			body, _ := io.ReadAll(r.Body)
			once.Do(func() { posted <- body })
		default:
			t.Errorf("the page asks for %s", r.URL)
		}
	}))
	defer server.Close()

	ended := start(t, "--remote-debugging-port=0", server.URL+"/") // or it would take the page for all there is to do
	var saw browsed
	select {
	case body := <-posted:
		if err := json.Unmarshal(body, &saw); err != nil {
			t.Fatal(err)
		}
	case out := <-ended:
		t.Fatalf("the browser ended: %s", out)
	case <-time.After(2 * time.Minute):
		t.Fatal("the page did not say what it saw")
	}
	list, _ := saw["complaints"].([]any)
	if len(list) > 0 || saw["threw"] != nil || saw["pwned"] != false {
		t.Errorf("the page complains: %.300v, threw %v, pwned %v", list, saw["threw"], saw["pwned"])
	}
	return saw
}

// escaped is a part of the policy as it stands in the page.
func escaped(s string) string {
	var b strings.Builder
	_ = writeTo(&b, text(s)) // a Builder takes everything
	return b.String()
}

// start starts a browser in a process group of its own, with nothing of the
// user's, and sees to it that all of it is gone at the end. Its output comes
// when it ends.
func start(t *testing.T, args ...string) <-chan string {
	t.Helper()
	return startWith(t, nil, args...)
}

// startWith is start for a browser that is told what to do over these files.
func startWith(t *testing.T, files []*os.File, args ...string) <-chan string {
	t.Helper()
	chromium := browser(t)
	profile := t.TempDir()
	args = append([]string{"--headless", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync",
		"--disable-dev-shm-usage", "--disable-breakpad", "--disable-crash-reporter", "--no-first-run", "--no-default-browser-check",
		"--user-data-dir=" + profile, "--window-size=1280,900"}, args...)
	if os.Geteuid() == 0 {
		args = append([]string{"--no-sandbox"}, args...)
	}
	var out strings.Builder
	cmd := exec.Command(chromium, args...)
	cmd.Stdout, cmd.ExtraFiles = &out, files
	cmd.WaitDelay = 10 * time.Second // a child may hold the pipe
	cmd.Env = append(os.Environ(), "HOME="+profile, "XDG_CONFIG_HOME="+profile, "XDG_CACHE_HOME="+profile)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended, gone := make(chan string, 1), make(chan struct{})
	go func() {
		_ = cmd.Wait() // it may have been killed
		ended <- out.String()
		close(gone)
	}()
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // it may have left by itself
		<-gone
		for alive(cmd.Process.Pid, profile) { // they are killed, and leave
			time.Sleep(5 * time.Millisecond)
		}
	})
	return ended
}

// alive reports whether a process is left of the group, or with the profile on
// its command line. Zombies are their new parent's business. Where there is no
// /proc nothing is seen.
func alive(pgid int, profile string) bool {
	dirs, _ := os.ReadDir("/proc")
	for _, d := range dirs {
		stat, err := os.ReadFile("/proc/" + d.Name() + "/stat")
		if err != nil {
			continue
		}
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:])) // state, parent, group
		line, _ := os.ReadFile("/proc/" + d.Name() + "/cmdline")
		if len(fields) > 2 && fields[0] != "Z" && (fields[2] == strconv.Itoa(pgid) || strings.Contains(string(line), profile)) {
			return true
		}
	}
	return false
}

func TestBrowserShowsWhatIsBehind(t *testing.T) {
	s := hangStory()
	saw := browse(t, render(t, "hang", s), `
		const bar = document.querySelector(".bar.open");
		bar.dispatchEvent(new MouseEvent("click", { bubbles: true }));
		const open = await eventShown();
		const kind = $("panel-kind").textContent, modal = $("panel").matches(":modal");
		await closePanel();
		await until(() => document.activeElement === bar);

		document.querySelector(".bar.failed").dispatchEvent(new MouseEvent("click", { bubbles: true }));
		const started = await eventShown();
		$("event-next").click();
		const completed = await until(() => $("event-text").textContent.includes("completed") && $("event-text").textContent);
		const last = $("event-next").disabled;
		$("event-raw").click();
		const raw = await until(() => $("event-text").textContent.startsWith('{"body"') && $("event-text").textContent);
		$("event-all").click();
		const place = await until(() => /of 98,/.test($("event-place").textContent) && $("event-place").textContent);
		await closePanel();

		document.querySelector("button.opener").click();
		await eventShown();
		await closePanel();
		await until(() => document.activeElement.matches("button.opener"));
		return { open, kind, modal, started, completed, last, raw, place };
	`, true)
	for key, want := range map[string]string{
		"open": "git push origin main", "kind": "Call of shell", "started": `"started"`, "completed": "12345678901234567890", "raw": `one line\nand another\n\ttabbed`,
	} {
		if got, _ := saw[key].(string); !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q in it", key, got, want)
		}
	}
	if saw["modal"] != true || saw["last"] != true {
		t.Errorf("saw %v", saw)
	}
	if got, _ := saw["completed"].(string); !strings.Contains(got, "\nand another") {
		t.Errorf("the lines of an output are not lines: %q", got)
	}
}

func TestBrowserKeys(t *testing.T) {
	saw := browse(t, render(t, "hang", hangStory()), `
		const titles = [];
		const here = () => document.activeElement.querySelector("title").textContent;
		const stops = document.querySelectorAll(".bar[tabindex='0']").length;
		document.querySelector(".bar[tabindex='0']").focus();
		for (const key of ["", "ArrowRight", "ArrowLeft", "End", "ArrowDown", "ArrowDown", "ArrowUp", "Home"]) { press(key); titles.push(here()); }
		const still = document.querySelectorAll(".bar[tabindex='0']").length;
		const wide = () => $("tracks").getBoundingClientRect().width;
		const fit = wide();
		press("+"); press("+");
		const near = wide();
		press("0");
		const back = wide();
		press("Enter");
		await until(() => $("panel").open && $("panel-title").textContent);
		await closePanel();
		await until(() => here() === titles.at(-1));
		$("tracks").focus(); // as a click beside the items does
		press("ArrowRight");
		const again = here();

		const body = () => getComputedStyle(document.body).backgroundColor;
		$("theme").click(); const dark = body();
		$("theme").click(); const light = body();

		const th = document.querySelector("#calls th:last-child button");
		th.click();
		const sorted = th.parentNode.getAttribute("aria-sort");
		const rows = () => [...document.querySelectorAll("#calls tbody tr")].filter((r) => r.offsetParent).length;
		const few = rows();
		document.querySelector("#calls .all").click();
		return { titles, again, stops, still, fit, near, back, dark, light, sorted, few, all: rows() };
	`, true)
	titles := saw["titles"].([]any)
	begins := []string{"Turn 1,", "Turn 2,", "Turn 1,", "Turn 5,", "agent started", "Assistant:", "agent started", "agent started"}
	for i, want := range begins {
		if got := titles[i].(string); !strings.HasPrefix(got, want) {
			t.Errorf("key %d leads to %q, want %q", i, got, want)
		}
	}
	if titles[6] != titles[4] || titles[7] == titles[6] || saw["again"] != titles[7] {
		t.Errorf("the keys lead to %q", titles)
	}
	if saw["stops"] != 1.0 || saw["still"] != 1.0 {
		t.Errorf("the timeline has %v stops, later %v, want one", saw["stops"], saw["still"])
	}
	if saw["near"].(float64) < 2*saw["fit"].(float64) || saw["back"] != saw["fit"] {
		t.Errorf("the zoom goes %v, %v, %v", saw["fit"], saw["near"], saw["back"])
	}
	if saw["dark"] == saw["light"] || saw["sorted"] != "descending" || saw["few"] != float64(firstRows) || saw["all"].(float64) <= firstRows {
		t.Errorf("saw %v", saw)
	}
}

// TestBrowserHostile: nothing that others wrote runs, even without the policy,
// and nothing makes the page wider than the screen.
func TestBrowserHostile(t *testing.T) {
	page := render(t, "hostile", hostileStory())
	for _, policed := range []bool{true, false} {
		saw := browse(t, page, `
			document.querySelector(".bar.open, .bar.failed, .bar.ok").dispatchEvent(new MouseEvent("click", { bubbles: true }));
			const shown = await eventShown();
			const more = $("event-more").textContent;
			$("event-raw").click();
			const raw = await until(() => $("event-text").textContent !== shown && $("event-text").textContent);
			for (const e of document.querySelectorAll("*")) e.focus?.();
			return { raw, more, over: document.documentElement.scrollWidth - innerWidth, images: document.images.length };
		`, policed)
		raw, _ := saw["raw"].(string)
		for _, want := range []string{"</script><script>window.pwned=1", `\u202eesrever`, `\u001b[31m`, `a\u0000b`, `\xff\xfe`} {
			if !strings.Contains(raw, want) {
				t.Errorf("%q is not in what is shown", want)
			}
		}
		if more, _ := saw["more"].(string); !strings.Contains(more, "are not in the report") {
			t.Errorf("of what is clipped it says %q", more)
		}
		if over, _ := saw["over"].(float64); over > 0 || saw["images"] != 0.0 {
			t.Errorf("saw %v", saw["over"])
		}
	}
}

func TestBrowserHuge(t *testing.T) {
	saw := browse(t, render(t, "huge", hugeStory(100_000, 20_000)), `
		const many = [...document.querySelectorAll(".bar")].find((b) => b.dataset.things.includes(" "));
		many.dispatchEvent(new MouseEvent("click", { bubbles: true }));
		const member = await until(() => document.querySelector("#panel-members .opener"));
		const members = document.querySelectorAll("#panel-members .opener").length;
		member.click();
		const shown = await eventShown();
		$("event-all").click();
		const place = await until(() => /of 100,000,/.test($("event-place").textContent) && $("event-place").textContent);
		return { members, things: many.dataset.things.split(" ").length, shown, place, elements: document.querySelectorAll("*").length };
	`, true)
	if saw["members"] != saw["things"] || !strings.Contains(fmt.Sprint(saw["shown"]), "of a long answer") {
		t.Errorf("saw %v", saw)
	}
	if saw["elements"].(float64) > 50_000 {
		t.Errorf("the page has %v elements", saw["elements"])
	}
}

// TestBrowserOld: without the means to unpack, the page says so.
func TestBrowserOld(t *testing.T) {
	saw := browse(t, render(t, "hang", hangStory()), `
		delete window.DecompressionStream;
		document.querySelector(".bar.open").dispatchEvent(new MouseEvent("click", { bubbles: true }));
		return { said: await until(() => !$("panel-text").hidden && $("panel-text").textContent) };
	`, true)
	if said, _ := saw["said"].(string); !strings.Contains(said, "cannot unpack") {
		t.Errorf("it says %q", said)
	}
}

// TestBrowserFile: the page works from a file, with nobody to help it.
func TestBrowserFile(t *testing.T) {
	file := t.TempDir() + "/report.html"
	if err := os.WriteFile(file, []byte(render(t, "hang", hangStory())), 0o600); err != nil {
		t.Fatal(err)
	}
	select {
	case dom := <-start(t, "--dump-dom", "file://"+file):
		if !strings.Contains(dom, `class="js"`) || !strings.Contains(dom, `<button type="button">Took</button>`) {
			t.Errorf("the scripts of the page did not run: %.500s", dom)
		}
	case <-time.After(2 * time.Minute):
		t.Fatal("the browser does not end")
	}
}

// TestBrowserLabels: the label of the verdict is seen however narrow the picture
// is, late moments have theirs on their left, and no label covers another one.
func TestBrowserLabels(t *testing.T) {
	saw := browse(t, render(t, "hang", hangStory()), `
		const seen = () => [...document.querySelectorAll("text.mark")].map((e) => ({ e, box: e.getBoundingClientRect() })).filter((l) => l.box.width > 0);
		const said = {}, covered = [];
		for (const width of [640, 830, 1112]) {
			$("scroller").style.width = width + "px";
			await until(() => $("tracks").clientWidth === width);
			let rounds = 0; // the page looks at its new width before the second picture
			const count = () => requestAnimationFrame(() => { if (++rounds < 3) count(); });
			count();
			await until(() => rounds >= 3);
			const all = seen(), marks = [...document.querySelectorAll("circle.mark")].map((e) => e.getBoundingClientRect());
			said[width] = all.map((l) => l.e.textContent);
			for (const a of all) {
				const over = (b) => a.box.left < b.right && b.left < a.box.right && a.box.top + 4 < b.bottom - 4 && b.top + 4 < a.box.bottom - 4;
				if (all.some((b) => b !== a && over(b.box)) || marks.some(over)) covered.push(width + " " + a.e.textContent);
			}
		}
		const verdict = seen().find((l) => l.e.textContent.startsWith("Hang"));
		return { said, covered, left: verdict.box.right < document.querySelector("circle.error").getBoundingClientRect().left };
	`, true)
	for width, want := range map[string][]string{"640": {"Hang in a tool call"}, "830": {"Hang in a tool call", "Suspicion in a tool call", "SIGTERM to 6 processes", "SIGKILL to 1 process"}} {
		got := fmt.Sprint(saw["said"].(map[string]any)[width])
		for _, label := range want {
			if !strings.Contains(got, label) {
				t.Errorf("at %s pixels there is no %q among %s", width, label, got)
			}
		}
	}
	if saw["left"] != true || len(saw["covered"].([]any)) > 0 {
		t.Errorf("saw %v", saw)
	}
}

// TestBrowserRows: the first lines of a row of a table stand beside each other,
// however many there are, and no row of tiles has a hole.
func TestBrowserRows(t *testing.T) {
	saw := browse(t, render(t, "hang", hangStory()), `
		$("verdict").style.width = "620px";
		const uneven = [];
		let wrapped = 0;
		for (const row of document.querySelectorAll("#verdict tbody tr")) {
			const lines = [];
			for (const cell of row.cells) {
				if (!cell.textContent.trim()) continue;
				const walk = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
				while (walk.nextNode() && !walk.currentNode.textContent.trim());
				const range = document.createRange();
				range.selectNodeContents(walk.currentNode);
				const all = range.getClientRects();
				if (!all.length) continue;
				if (cell.querySelector(".opener") && all.length > 1) wrapped++;
				lines.push((all[0].top + all[0].bottom) / 2);
			}
			if (lines.length && Math.max(...lines) - Math.min(...lines) > 3) uneven.push(row.textContent + ": " + lines.join(" "));
		}
		const holes = [], tiles = document.querySelector(".tiles");
		for (const few of [false, true]) {
			if (few) tiles.lastElementChild.remove();
			for (const width of [332, 362, 500, 700, 900]) {
				tiles.style.width = width + "px";
				const ends = {};
				for (const one of tiles.children) ends[one.offsetTop] = one.getBoundingClientRect().right;
				const right = tiles.getBoundingClientRect().right;
				for (const end of Object.values(ends)) if (right - end > 2.5) holes.push([tiles.children.length, width, right - end]);
			}
		}
		return { uneven, wrapped, holes };
	`, true)
	if len(saw["uneven"].([]any)) > 0 || len(saw["holes"].([]any)) > 0 || saw["wrapped"] == 0.0 {
		t.Errorf("saw %v", saw)
	}
}
