"use strict";
// The page says everything without this file but the raw events. Here are zoom,
// the walk by keys, the panel, sorting and the theme. Text gets into the page
// by textContent only.
(() => {
  const $ = (id) => document.getElementById(id);
  const root = document.documentElement;
  const tracks = $("tracks"), scroller = $("scroller");

  function make(name, className, text) {
    const e = document.createElement(name);
    if (className) e.className = className;
    if (text !== undefined) e.textContent = text;
    return e;
  }

  // ---- Theme ----

  function setTheme(theme) {
    if (theme) root.dataset.theme = theme; else delete root.dataset.theme;
    $("theme").textContent = "Theme: " + (theme || "system");
    try {
      if (theme) localStorage.setItem("cursor-wrap-theme", theme); else localStorage.removeItem("cursor-wrap-theme");
    } catch { /* it holds for this visit */ }
  }
  const following = { "": "dark", dark: "light", light: "" };
  $("theme").addEventListener("click", () => setTheme(following[root.dataset.theme || ""]));
  $("theme").textContent = "Theme: " + (root.dataset.theme || "system");

  // ---- Records: unpacked when somebody asks ----

  const unpacked = new Map(); // of a script element, what is in it
  const blocks = {};
  function blocksOf(store) {
    blocks[store] ||= [...document.querySelectorAll(`script[data-store="${store}"]`)];
    return blocks[store];
  }

  async function unpack(block) {
    if (typeof DecompressionStream === "undefined") {
      throw new Error("This browser cannot unpack the events (it has no DecompressionStream). Chrome 80, Firefox 113 and Safari 16.4 can.");
    }
    const bytes = Uint8Array.from(atob(block.textContent), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return (await new Response(stream).text()).split("\n");
  }

  async function recordOf(store, n) {
    const all = blocksOf(store);
    let low = 0, high = all.length - 1;
    while (low < high) { // the last block that begins at or before n
      const middle = (low + high + 1) >> 1;
      if (Number(all[middle].dataset.first) <= n) low = middle; else high = middle - 1;
    }
    if (!all[low]) throw new Error("The report holds no such record.");
    if (!unpacked.has(all[low])) unpacked.set(all[low], unpack(all[low]));
    const lines = await unpacked.get(all[low]);
    return JSON.parse(lines[n - Number(all[low].dataset.first)]);
  }

  function countOf(store) {
    const last = blocksOf(store).at(-1);
    return last ? unpackedCount(last) : Promise.resolve(0);
  }
  async function unpackedCount(block) {
    if (!unpacked.has(block)) unpacked.set(block, unpack(block));
    return Number(block.dataset.first) + (await unpacked.get(block)).length - 1;
  }

  // ---- Showing text of others ----

  const hidden = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\u{e0000}-\u{e007f}]/u;
  const hiddenRun = new RegExp(`(${hidden.source})`, "u");

  // plain appends text, with characters that are not seen as what they are.
  function plain(to, text, className) {
    for (const part of text.split(hiddenRun)) {
      if (!part) continue;
      if (hidden.test(part)) {
        to.append(make("span", "control", "\\u" + part.codePointAt(0).toString(16).padStart(4, "0")));
      } else {
        to.append(className ? make("span", className, part) : part);
      }
    }
  }

  const longest = 300_000; // of a line that is laid out; the rest stands there as it came

  // pretty lays JSON out by its tokens, each as it stands there: numbers keep
  // their digits, and a line that was cut off is laid out as far as it goes. The
  // line feeds in strings are followed by real ones.
  function pretty(to, raw) {
    const token = /"(?:[^"\\]|\\.)*"?|[{}\[\],:]|[^\s{}\[\],:"]+/gs;
    let depth = 0, before = "";
    const line = () => "\n" + "  ".repeat(Math.min(depth, 40));
    for (const [t] of raw.slice(0, longest).matchAll(token)) {
      const empty = (t === "}" && before === "{") || (t === "]" && before === "[");
      if (t === "}" || t === "]") depth = Math.max(0, depth - 1);
      if (before && !empty && (before === "{" || before === "[" || before === "," || t === "}" || t === "]")) to.append(line());
      if (t === ":") to.append(": ");
      else if (t.startsWith('"')) quoted(to, t, before === "{" || before === ",");
      else if (t.length === 1 && "{}[],".includes(t)) to.append(t);
      else plain(to, t, "json-other");
      if (t === "{" || t === "[") depth++;
      before = t;
    }
    plain(to, raw.slice(longest));
  }

  function quoted(to, t, maybeKey) {
    const className = maybeKey && t.length < 80 && !t.includes("\\") ? "json-key" : "json-string";
    for (const part of t.split(/(\\(?:u[0-9a-fA-F]{4}|.))/s)) {
      if (part === "\\n") to.append(make("span", "escape", part), "\n");
      else if (part === "\\t") to.append(make("span", "escape", part), "\t");
      else if (part.startsWith("\\")) to.append(make("span", "escape", part));
      else plain(to, part, className);
    }
  }

  // ---- The panel ----

  const panel = $("panel");
  const shown = { opener: null, members: [], thing: null, events: null, at: 0, current: 0, ticket: 0 };

  async function open(opener) {
    if (opener.matches(".bar")) walkTo(opener); // or it could not get the focus back
    shown.opener = opener;
    shown.members = opener.dataset.things.split(" ").map(Number);
    if (!panel.open) panel.showModal();
    await showThing(shown.members.length === 1 ? shown.members[0] : -1);
  }

  function close() { panel.close(); }
  panel.addEventListener("close", () => shown.opener?.focus());
  panel.addEventListener("click", (e) => { if (e.target === panel) close(); });
  $("panel-close").addEventListener("click", close);

  async function showThing(n) {
    const ticket = ++shown.ticket;
    for (const id of ["panel-facts", "panel-text", "panel-members"]) $(id).replaceChildren();
    $("panel-text").hidden = $("panel-events").hidden = true;
    $("event-all").checked = false;
    try {
      if (n < 0) return await showMembers(ticket);
      const thing = await recordOf("things", n);
      if (ticket !== shown.ticket) return;
      $("panel-kind").textContent = thing.kind;
      $("panel-title").replaceChildren();
      plain($("panel-title"), thing.title || "(nothing)");
      for (const [name, value] of thing.facts || []) {
        const said = make("dd");
        plain(said, value);
        $("panel-facts").append(make("dt", "", name), said);
      }
      $("panel-text").hidden = !thing.text;
      plain($("panel-text"), thing.text || "");
      if (shown.members.length > 1) {
        const back = make("button", "", "‹ All " + shown.members.length);
        back.addEventListener("click", () => showThing(-1));
        $("panel-members").append(back);
      }
      shown.thing = thing;
      await chooseEvents(ticket);
    } catch (e) {
      if (ticket === shown.ticket) fail(e);
    }
    $("panel-title").focus();
  }

  function fail(e) {
    $("panel-text").hidden = false;
    $("panel-text").textContent = e.message;
  }

  const listed = 300;
  async function showMembers(ticket) {
    const all = shown.members;
    $("panel-kind").textContent = "Too close together to be drawn apart";
    $("panel-title").textContent = `${all.length} items`;
    const list = document.createDocumentFragment();
    for (const n of all.slice(0, listed)) {
      const thing = await recordOf("things", n);
      const b = make("button", "opener");
      b.type = "button";
      plain(b, `${thing.facts.slice(0, 2).map((f) => f[1]).join(" · ")}  ${thing.kind}: ${thing.title}`);
      b.addEventListener("click", () => showThing(n));
      list.append(b);
    }
    if (ticket !== shown.ticket) return;
    if (all.length > listed) list.append(make("p", "faint", `and ${all.length - listed} more`));
    $("panel-members").replaceChildren(list);
  }

  // chooseEvents decides which events one can step through: those of the thing,
  // or all. Of a call only its two ends are its own.
  async function chooseEvents(ticket) {
    const { first, last, ends } = shown.thing;
    const total = first < 0 ? 0 : await countOf("events");
    if (ticket !== shown.ticket) return;
    $("panel-events").hidden = total === 0;
    if (total === 0) return;
    const end = Math.max(first, last);
    if ($("event-all").checked) {
      shown.events = { length: total, at: (i) => i };
      shown.at = shown.current;
    } else {
      const length = ends ? (end > first ? 2 : 1) : end - first + 1;
      shown.events = { length, at: (i) => (ends && i === 1 ? end : first + i) };
      shown.at = 0;
    }
    await showEvent(ticket);
  }

  async function showEvent(ticket) {
    const { events, at } = shown;
    const n = events.at(at);
    const record = await recordOf("events", n);
    if (ticket !== shown.ticket) return;
    shown.current = n;
    $("event-place").textContent = `${(at + 1).toLocaleString("en")} of ${events.length.toLocaleString("en")}, line ${(n + 1).toLocaleString("en")} of the stream`;
    $("event-previous").disabled = at === 0;
    $("event-next").disabled = at === events.length - 1;
    $("event-name").replaceChildren(make("strong"), ` ${record.rel}, ${record.at}, ${record.size}`);
    plain($("event-name").firstChild, record.name);
    $("event-more").textContent = record.more || "";
    const pre = $("event-text");
    pre.replaceChildren();
    if ($("event-raw").checked) plain(pre, record.raw); else pretty(pre, record.raw);
    pre.scrollTop = 0;
  }

  function step(by) {
    const to = shown.at + by;
    if (to < 0 || to >= shown.events.length) return;
    shown.at = to;
    showEvent(++shown.ticket).catch(fail);
  }
  $("event-previous").addEventListener("click", () => step(-1));
  $("event-next").addEventListener("click", () => step(1));
  $("event-raw").addEventListener("change", () => showEvent(++shown.ticket).catch(fail));
  $("event-all").addEventListener("change", () => chooseEvents(++shown.ticket).catch(fail));
  panel.addEventListener("keydown", (e) => {
    if ($("panel-events").hidden || e.target.matches("input, pre") || e.ctrlKey || e.metaKey || e.altKey) return;
    if (e.key === "ArrowLeft") step(-1);
    else if (e.key === "ArrowRight") step(1);
    else return;
    e.preventDefault();
  });

  document.addEventListener("click", (e) => {
    const opener = e.target.closest?.("[data-things]");
    if (opener) open(opener);
  });

  // ---- Zoom ----

  let zoom = 1;
  const widest = 40;
  function fitLabels() {
    const width = tracks.clientWidth || tracks.getBoundingClientRect().width;
    for (const g of tracks.querySelectorAll(".fits")) {
      if (Number(g.dataset.from) <= width) g.removeAttribute("display"); else g.setAttribute("display", "none");
    }
  }

  // setZoom keeps the given place, a share of the width, where it is seen.
  function setZoom(to, place) {
    const before = tracks.getBoundingClientRect().width;
    const middle = scroller.scrollLeft + scroller.clientWidth / 2;
    place ??= middle / before;
    const offset = place * before - scroller.scrollLeft;
    zoom = Math.min(widest, Math.max(1, to));
    tracks.style.width = zoom * 100 + "%";
    scroller.scrollLeft = place * tracks.getBoundingClientRect().width - offset;
    $("zoom-out").disabled = zoom <= 1;
    $("zoom-in").disabled = zoom >= widest;
    fitLabels();
  }

  if (tracks) {
    $("zoom-in").addEventListener("click", () => setZoom(zoom * 1.6, placeOf(document.querySelector(".bar[tabindex='0']"))));
    $("zoom-out").addEventListener("click", () => setZoom(zoom / 1.6));
    $("zoom-fit").addEventListener("click", () => setZoom(1));
    $("zoom-out").disabled = true;
    scroller.addEventListener("wheel", (e) => {
      if (!e.ctrlKey && !e.metaKey) return;
      e.preventDefault();
      setZoom(zoom * Math.exp(-e.deltaY / 300), shareAt(e));
    }, { passive: false });
    new ResizeObserver(fitLabels).observe(scroller);
    fitLabels();
    // Where it is wider than the screen: what went wrong is at the end.
    if (!document.querySelector(".hero.good")) scroller.scrollLeft = scroller.scrollWidth;
  }

  function shareAt(e) {
    const box = tracks.getBoundingClientRect();
    return Math.min(1, Math.max(0, (e.clientX - box.left) / box.width));
  }

  // placeOf is where an item begins, if it has been walked to and is in sight.
  function placeOf(item) {
    if (!item || !walked) return undefined;
    const x = shareOf(item) * tracks.getBoundingClientRect().width - scroller.scrollLeft;
    return x >= 0 && x <= scroller.clientWidth ? shareOf(item) : undefined;
  }

  function shareOf(item) { return parseFloat(item.getAttribute("x") || item.getAttribute("cx") || "0") / 100; }

  // ---- What was at a moment ----

  const chart = JSON.parse($("chart").textContent) || { start: 0, zero: 0, span: 1, samples: [], deadlines: [], phases: [] };

  function lastAt(list, ms) {
    let low = -1, high = list.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (list[middle][0] <= ms) low = middle; else high = middle - 1;
    }
    return low;
  }

  function span(ms) {
    if (ms < 1000) return Math.round(ms) + "ms";
    if (ms < 60_000) return (ms / 1000).toFixed(1) + "s";
    const s = Math.round(ms / 1000), h = Math.floor(s / 3600), m = Math.floor((s % 3600) / 60);
    return (h ? h + "h" : "") + m + "m" + (s % 60) + "s";
  }

  function readOut(part) {
    const ms = part * chart.span;
    const since = ms - (chart.zero - chart.start);
    const said = [since < 0 ? "before the start" : `+${span(since)}`, new Date(chart.start + ms).toISOString().slice(11, 23)];
    const d = lastAt(chart.deadlines, ms);
    if (d >= 0) {
      const until = chart.deadlines[d][1];
      said.push(until === 0 ? "no deadline" : until > ms ? `${span(until - ms)} left` : `${span(ms - until)} past the deadline`);
      if (chart.phases[d]) said.push(chart.phases[d]);
    }
    const s = lastAt(chart.samples, ms);
    if (s >= 0) {
      const [, percent, alive] = chart.samples[s];
      said.push(percent < 0 ? "CPU unknown" : `CPU ${percent.toFixed(1)} %`, `${alive} ${alive === 1 ? "process" : "processes"}`);
    }
    $("readout").textContent = said.join(" · ");
    for (const x of ["x1", "x2"]) $("hairline").setAttribute(x, part * 100 + "%");
  }
  tracks?.addEventListener("pointermove", (e) => readOut(shareAt(e)));

  // ---- Walking by keys ----

  let lanes = null; // each the items of a lane, by their start
  let walked = false;
  function lanesNow() {
    lanes ||= [...tracks.querySelectorAll(".lane")].map((g) => [...g.querySelectorAll(".bar")]).filter((l) => l.length);
    return lanes;
  }

  function walkTo(item) {
    if (!item) return;
    tracks.querySelector(".bar[tabindex='0']")?.setAttribute("tabindex", "-1");
    item.setAttribute("tabindex", "0");
    item.focus({ preventScroll: true });
    walked = true;
    const x = shareOf(item) * tracks.getBoundingClientRect().width;
    if (x < scroller.scrollLeft || x > scroller.scrollLeft + scroller.clientWidth - 40) scroller.scrollLeft = x - scroller.clientWidth / 3;
    const box = item.getBoundingClientRect();
    if (box.top < 50 || box.bottom > innerHeight) item.scrollIntoView({ block: "center", inline: "nearest" });
  }

  function nearest(list, part) {
    return list.reduce((best, item) => (Math.abs(shareOf(item) - part) < Math.abs(shareOf(best) - part) ? item : best), list[0]);
  }

  const walks = {
    ArrowRight: (list, i) => list[i + 1],
    ArrowLeft: (list, i) => list[i - 1],
    Home: (list) => list[0],
    End: (list) => list.at(-1),
    ArrowDown: (list, i, lane) => lanes[lane + 1] && nearest(lanes[lane + 1], shareOf(list[i])),
    ArrowUp: (list, i, lane) => lanes[lane - 1] && nearest(lanes[lane - 1], shareOf(list[i])),
  };

  // Who has clicked beside the items, or got to the scroller, walks on from where he was.
  scroller?.addEventListener("keydown", (e) => {
    const at = e.target.closest(".bar"), item = at || tracks.querySelector(".bar[tabindex='0']");
    if (!item || e.ctrlKey || e.metaKey || e.altKey) return;
    if (!at && (walks[e.key] || e.key === "Enter" || e.key === " ")) walkTo(item);
    else if (e.key === "Enter" || e.key === " ") open(item);
    else if (e.key === "+" || e.key === "=") setZoom(zoom * 1.6, shareOf(item));
    else if (e.key === "-") setZoom(zoom / 1.6, shareOf(item));
    else if (e.key === "0") setZoom(1);
    else if (walks[e.key]) {
      const lane = lanesNow().findIndex((l) => l.includes(item));
      walkTo(walks[e.key](lanes[lane], lanes[lane].indexOf(item), lane));
    } else return;
    e.preventDefault();
  });
  tracks?.addEventListener("focusin", (e) => { if (e.target.closest(".bar")) readOut(shareOf(e.target)); });

  // ---- Tables ----

  for (const table of document.querySelectorAll("table.sortable")) {
    if (table.tBodies[0].rows.length < 2 || table.querySelector(".branch")) continue; // a tree has its order
    for (const th of table.tHead.rows[0].cells) {
      const b = make("button", "", th.textContent);
      b.type = "button";
      th.replaceChildren(b);
      b.addEventListener("click", () => sort(table, th));
    }
  }

  function sort(table, th) {
    const column = th.cellIndex, up = th.getAttribute("aria-sort") === "descending";
    for (const other of th.parentNode.cells) other.removeAttribute("aria-sort");
    th.setAttribute("aria-sort", up ? "ascending" : "descending");
    const value = (row) => row.cells[column].dataset.value ?? row.cells[column].textContent;
    const compare = (a, b) => {
      const x = value(a), y = value(b);
      return x !== "" && y !== "" && !isNaN(x) && !isNaN(y) ? x - y : x.localeCompare(y);
    };
    const rows = [...table.tBodies[0].rows].sort((a, b) => (up ? compare(a, b) : compare(b, a)));
    const limit = rows.filter((r) => !r.classList.contains("more")).length;
    rows.forEach((row, i) => row.classList.toggle("more", i >= limit));
    table.tBodies[0].append(...rows);
  }

  for (const b of document.querySelectorAll("button.all")) {
    b.addEventListener("click", () => {
      b.closest(".grid").classList.add("full");
      b.remove();
    });
  }
})();
