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
  // Each span is two points, its start and its end, so that its number is a level line and its interval a box.
  const twice = (values) => values.flatMap((value) => [value, value]);
  const starts = column("start"), ends = column("end"), lows = column("low"), highs = column("high");
  const data = [starts.flatMap((start, at) => [start, ends[at] - 0.001]), twice(highs), twice(lows), twice(column("value"))];
  // What has no upper limit is drawn up to the top, below.
  data[2].forEach((low, at) => { if (data[1][at] === null) data[2][at] = null; });
  const first = starts[0], last = ends[ends.length - 1], least = ends[0] - starts[0];
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

  const cells = (at) => (rows[at >> 1] ? [...rows[at >> 1].cells].map((each) => each.textContent.trim()) : []);
  const told = (at, name) => {
    const found = cells(at);
    return { span: found[0], number: found[1], interval: found.length > 5 ? found[2] : "", note: found[found.length - 3] }[name] || "–";
  };
  const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
  const clock = new Intl.DateTimeFormat("en-GB", { timeZone: zone, hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
  const day = new Intl.DateTimeFormat("en-GB", { timeZone: zone, day: "numeric", month: "short" });
  const month = new Intl.DateTimeFormat("en-GB", { timeZone: zone, month: "short", year: "numeric" });
  const time = (seconds, step) => {
    const at = new Date(seconds * 1000);
    if (step >= 28 * 86400) return month.format(at);
    return step >= 86400 || clock.format(at) === "00:00" ? day.format(at) : clock.format(at);
  };
  // Spans without a number are grey columns; those without an upper limit go up to the top, from a thick line at the lower.
  const beyond = (u, band, line, grey) => {
    const { ctx, bbox } = u;
    rows.forEach((_, at) => {
      const left = Math.max(u.valToPos(starts[at], "x", true), bbox.left);
      const right = Math.min(u.valToPos(ends[at], "x", true), bbox.left + bbox.width);
      if (right <= left || highs[at] !== null) return;
      const low = lows[at] === null ? bbox.top + bbox.height : u.valToPos(lows[at], "y", true);
      ctx.fillStyle = lows[at] === null ? grey : band;
      ctx.fillRect(left, bbox.top, right - left, low - bbox.top);
      ctx.fillStyle = line;
      if (lows[at] !== null) ctx.fillRect(left, low - 2, right - left, 3);
    });
  };
  const draw = () => {
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    const font = "12.5px " + getComputedStyle(document.body).fontFamily;
    const axis = { stroke: colour("--quiet"), font, grid: { stroke: colour("--grid"), width: 1 }, ticks: { show: false } };
    const side = { stroke: "transparent", points: { show: false } };
    const most = Math.max(1, ...highs, ...lows.map((low) => 1.15 * low));
    plot = new uPlot({
      width: figure.clientWidth, height: 320,
      tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), zone),
      scales: { y: { range: (u, low, high) => [0, 1.05 * Math.max(high || 0, lows.some((each, at) => each !== null && highs[at] === null) ? most : 1)] } },
      axes: [
        { ...axis, space: 70, values: (u, ticks, at, space, step) => ticks.map((tick) => time(tick, step)) },
        { ...axis, size: 64, values: (u, ticks) => ticks.map((tick) => (Number.isInteger(tick) ? whole.format(tick) : "")) },
      ],
      bands: [{ series: [1, 2], fill: colour("--band-fill") }],
      cursor: { points: { size: 7 } },
      hooks: { drawAxes: [(u) => beyond(u, colour("--band-fill"), colour("--accent"), colour("--grid"))] },
      series: [
        { label: "Span", value: (u, seconds, series, at) => told(at, "span") },
        { ...side, label: "95 % interval", value: (u, value, series, at) => told(at, "interval") },
        { ...side, label: "Note", value: (u, value, series, at) => told(at, "note") },
        { label: "Number", stroke: colour("--accent"), width: 1.6, points: { show: false }, value: (u, value, series, at) => told(at, "number") },
      ],
    }, data, place);
    const picture = figure.querySelector("svg"), canvas = place.querySelector("canvas");
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", `${picture.querySelector("title").textContent}, zoomed: the table below has the numbers`);
  };

  new ResizeObserver(() => { if (plot) plot.setSize({ width: figure.clientWidth, height: 320 }); }).observe(figure);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { if (plot) { plot.destroy(); draw(); } });
  label();
})();
