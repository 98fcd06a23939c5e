"use strict";

/* Images and frames: one slider, an order, a play button. */
let browser = null;

function openBrowser() {
  const data = document.getElementById("browser-data");
  if (browser && browser.timer) clearInterval(browser.timer);
  if (!data) { browser = null; return; }
  const before = browser ? browser.current() : null;
  const { panes, items, is_video: isVideo, ratio } = JSON.parse(data.textContent);
  const slider = document.getElementById("position");
  const order = document.getElementById("order");
  const play = document.getElementById("play");
  const images = panes.map((_, pane) => document.getElementById(`pane-${pane}`));
  const box = document.getElementById("panes");
  box.style.setProperty("--ratio", ratio);
  let shown = items.slice();

  function show() {
    const item = shown[Number(slider.value)];
    images.forEach((image, pane) => {
      image.src = item.src[pane];
      image.alt = `${panes[pane]}, ${isVideo ? "frame" : "image"} ${item.index}`;
    });
    const label = item.label === null ? "" : `, label ${item.label}`;
    const text = `${isVideo ? "frame" : "image"} ${item.index}${label}: ${item.corrupted} % of its ${isVideo ? "pixels are foreground" : "entries stand out"}`;
    document.getElementById("caption").textContent = text;
    slider.setAttribute("aria-valuetext", text);
  }
  function sort() {
    const by = order ? order.value : "number";
    shown = items.slice().sort((a, b) => (by === "corrupted" ? b.corrupted - a.corrupted : 0) || a.index - b.index);
  }
  function jump(index) {
    const at = shown.findIndex((item) => item.index === index);
    if (at < 0) return false;
    slider.value = at;
    show();
    return true;
  }
  function toggle() {
    if (browser.timer) { clearInterval(browser.timer); browser.timer = null; }
    else browser.timer = setInterval(() => { slider.value = (Number(slider.value) + 1) % shown.length; show(); }, 120);
    play.setAttribute("aria-pressed", String(browser.timer !== null));
    play.textContent = browser.timer ? "Pause" : "Play";
  }
  slider.addEventListener("input", show);
  if (order) order.addEventListener("change", () => { sort(); slider.value = 0; show(); });
  if (play) play.addEventListener("click", toggle);
  images.forEach((image) => image.addEventListener("load", () => image.classList.toggle("coarse", image.naturalWidth < 100)));
  browser = { jump, timer: null, current: () => ({ order: order && order.value, index: shown[Number(slider.value)].index }) };
  if (before && order) order.value = before.order;
  sort();
  if (!before || !jump(before.index)) show();
}

/* Tables: a heading sorts, a number shows its image. */
function openTables() {
  for (const table of document.querySelectorAll("table.sortable")) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => head.firstElementChild.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") !== "descending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const value = (row) => row.cells[column].dataset.value;
      const numeric = [...table.tBodies[0].rows].every((row) => value(row).trim() !== "" && isFinite(value(row)));
      const compare = numeric
        ? (a, b) => Number(value(a)) - Number(value(b))
        : (a, b) => value(a).localeCompare(value(b));
      const rows = [...table.tBodies[0].rows].sort((a, b) => (down ? -1 : 1) * compare(a, b));
      table.tBodies[0].append(...rows);
    }));
  }
  for (const button of document.querySelectorAll(".jump")) {
    if (!browser) { button.replaceWith(button.textContent); continue; }
    button.addEventListener("click", () => {
      if (browser.jump(Number(button.dataset.index))) document.getElementById("browser").scrollIntoView({ block: "nearest" });
    });
  }
}

/* The explorer: a move of a slider asks for a new fit; only the latest move counts. */
function openControls() {
  const form = document.getElementById("controls");
  if (!form) return;
  const sliders = [...form.querySelectorAll("input")];
  const status = document.getElementById("status");
  let latest = 0;
  let pause = null;

  const read = (slider) => (slider.dataset.scale === "log" ? 10 ** Number(slider.value) : Number(slider.value));
  const round = (value) => Number(value.toPrecision(3));
  function label() {
    for (const slider of sliders) {
      const unit = Number(slider.dataset.unit);
      const text = unit ? `${round(read(slider) * unit)} (${round(read(slider))} × auto)` : String(read(slider));
      document.getElementById(`${slider.id}-value`).value = text;
      slider.setAttribute("aria-valuetext", text);
    }
  }
  function say(text, bad) {
    status.textContent = text;
    status.classList.toggle("bad", Boolean(bad));
  }
  function put({ sections, plots = {} }) {
    for (const [name, address] of Object.entries(plots)) {
      const picture = document.querySelector(`#plot-${name} picture`);
      if (!picture) continue;
      picture.querySelectorAll("source").forEach((source) => source.remove());
      picture.querySelector("img").src = address;
    }
    for (const [name, html] of Object.entries(sections)) document.getElementById(name).innerHTML = html;
    if ("browser" in sections) openBrowser();
    if ("tables" in sections) openTables();
  }
  async function ask(path, move) {
    const response = await fetch(path, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(move),
    });
    const answer = await response.json();
    if (!response.ok) throw Object.assign(new Error(answer.error), { superseded: response.status === 409 });
    return answer;
  }
  function stale(yes) {
    for (const name of ["plots", "theory", "about"]) document.getElementById(name).classList.toggle("stale", yes);
  }
  async function solve() {
    const number = ++latest;
    const move = { dark: matchMedia("(prefers-color-scheme: dark)").matches };
    for (const slider of sliders) move[slider.name] = read(slider);
    say("solving …");
    stale(true);
    const start = performance.now();
    try {
      const answer = await ask("solve", move);
      if (number !== latest) return;
      put(answer);
      say(`solved in ${((performance.now() - start) / 1000).toFixed(2)} s; diagnostics …`);
      const more = await ask("diagnose", { ...move, ticket: answer.ticket });
      if (number !== latest) return;
      put(more);
      stale(false);
      say(`solved in ${answer.seconds.toFixed(2)} s, ${answer.steps} steps from the last result`);
    } catch (error) {
      if (number === latest && !error.superseded) say(error.message || "the server has ended", true);
    }
  }
  const find = document.getElementById("find-cells");
  if (find) find.addEventListener("click", async () => {
    const said = document.getElementById("cells-status");
    find.disabled = true;
    said.textContent = "judging every cell …";
    try {
      put(await ask("cells", { dark: matchMedia("(prefers-color-scheme: dark)").matches }));
      document.getElementById("cells").scrollIntoView({ block: "nearest" });
    } catch (error) {
      find.disabled = false;
      said.textContent = error.message || "the server has ended";
    }
  });
  form.addEventListener("input", () => { label(); clearTimeout(pause); pause = setTimeout(solve, 60); });
  form.addEventListener("submit", (event) => event.preventDefault());
  label();
}

openBrowser();
openTables();
openControls();
