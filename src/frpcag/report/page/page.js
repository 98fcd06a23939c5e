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

openBrowser();
openTables();
