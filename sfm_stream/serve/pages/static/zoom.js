// A trend that can be zoomed, drawn by uPlot from the rows of the table. Without it the picture and the table say the same.
"use strict";
(() => {
  const table = document.getElementById("rows");
  const figure = document.getElementById("figure");
  if (!table || !figure || typeof uPlot === "undefined") return;
  const rows = [...table.tBodies[0].rows];
  if (rows.length < 2) return;
  const zone = table.dataset.zone;
  const number = (text) => (text === "" ? null : Number(text));
  const column = (name) => rows.map((row) => number(row.dataset[name]));
  // The last step reaches to the end of its span.
  const starts = [...column("start"), number(rows[rows.length - 1].dataset.end)];
  const steps = (name) => { const values = column(name); return [...values, values[values.length - 1]]; };
  const data = [starts, steps("high"), steps("low"), steps("value")];
  const first = starts[0], last = starts[starts.length - 1], least = starts[1] - starts[0];
  let plot = null;

  const bar = document.createElement("div");
  bar.className = "zoom-bar";
  bar.setAttribute("role", "group");
  bar.setAttribute("aria-label", "Zoom");
  figure.insertBefore(bar, figure.querySelector("figcaption"));
  const place = document.createElement("div");
  figure.insertBefore(place, bar);

  const button = (words, act) => {
    const made = document.createElement("button");
    made.type = "button";
    made.textContent = words;
    made.addEventListener("click", act);
    bar.append(made);
    return made;
  };
  const show = (low, high) => {
    const width = Math.min(Math.max(high - low, least), last - first);
    const start = Math.min(Math.max(low, first), last - width);
    plot.setScale("x", { min: start, max: start + width });
  };
  const by = (factor, shift) => () => {
    const { min, max } = plot.scales.x, width = (max - min) * factor, middle = (min + max) / 2 + shift * (max - min);
    show(middle - width / 2, middle + width / 2);
  };
  const moves = [
    button("Zoom in", by(0.5, 0)), button("Zoom out", by(2, 0)),
    button("Earlier", by(1, -0.5)), button("Later", by(1, 0.5)), button("All", () => show(first, last)),
  ];
  const toggle = button("Zoom", () => (plot ? close() : open()));
  const label = () => {
    moves.forEach((each) => { each.hidden = !plot; });
    toggle.textContent = plot ? "Back to the picture" : "Zoom";
  };
  const open = () => { figure.classList.add("zoomed"); draw(); label(); };
  const close = () => { plot.destroy(); plot = null; figure.classList.remove("zoomed"); label(); };

  const cell = (row, at) => (row && row.cells.length > at ? row.cells[at].textContent.trim() : "");
  const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
  const draw = () => {
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    const font = "12.5px " + getComputedStyle(document.body).fontFamily;
    const axis = { stroke: colour("--quiet"), font, grid: { stroke: colour("--grid"), width: 1 }, ticks: { show: false } };
    const stepped = uPlot.paths.stepped({ align: 1 });
    const side = { stroke: "transparent", paths: stepped, points: { show: false } };
    plot = new uPlot({
      width: figure.clientWidth, height: 320,
      tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), zone),
      scales: { y: { range: (_, low, high) => [0, Math.max(1, high === null ? 1 : high * 1.05)] } },
      axes: [axis, { ...axis, size: 64, values: (_, ticks) => ticks.map((tick) => whole.format(tick)) }],
      bands: [{ series: [1, 2], fill: colour("--band-fill") }],
      cursor: { points: { size: 7 } },
      series: [
        { label: "Span", value: (_, seconds, series, at) => cell(rows[at], 0) || "none chosen" },
        { ...side, label: "95 % interval", value: (_, value, series, at) => (rows[at] && rows[at].cells.length > 5 ? cell(rows[at], 2) : "") },
        { ...side, label: "Note", value: (_, value, series, at) => (rows[at] ? rows[at].cells[rows[at].cells.length - 3].textContent.trim() : "") },
        { label: "Number", stroke: colour("--accent"), width: 1.6, paths: stepped, points: { show: false },
          value: (_, value, series, at) => cell(rows[at], 1) },
      ],
    }, data, place);
    const picture = figure.querySelector("svg");
    place.querySelector("canvas").setAttribute("role", "img");
    place.querySelector("canvas").setAttribute("aria-label", picture.querySelector("title").textContent + ", zoomed: the table below has the numbers");
  };

  new ResizeObserver(() => { if (plot) plot.setSize({ width: figure.clientWidth, height: 320 }); }).observe(figure);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { if (plot) { plot.destroy(); draw(); } });
  label();
})();
