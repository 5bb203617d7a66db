"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const Z = 1.6448536269514722;
  const cells = data.cells ?? { most: 0 };  // a page without them has no controls

  // bins as sums of neighbouring cells
  const fractions = new Set();
  for (let m = 1; m <= cells.most; m += 1) for (let k = 0; k <= m; k += 1) fractions.add(k / m);
  const position = new Map([...fractions].sort((a, b) => a - b).map((edge, index) => [edge, index]));
  const empty = (low, high) => ({ low, high, count: 0, p: 0, y: 0, squares: 0 });
  const add = (bin, [count, p, y, squares]) => { bin.count += count; bin.p += p; bin.y += y; bin.squares += squares; };
  const widthBins = (m) => {
    const cuts = Array.from({ length: m + 1 }, (_, k) => position.get(k / m));
    const bins = Array.from({ length: m }, (_, k) => empty(k / m, (k + 1) / m));
    let bin = 0;
    cells.held.forEach((cell, index) => {
      while (cell >= cuts[bin + 1]) bin += 1;
      add(bins[bin], cells.width[index]);
    });
    return bins;
  };
  const massBins = (m) => {
    const bins = Array.from({ length: m }, () => empty(NaN, NaN));
    let bin = 0;
    cells.mass.forEach((cell, index) => {
      while (cells.ranks[index] >= Math.ceil(((bin + 1) * cells.n) / m)) bin += 1;
      if (!bins[bin].count) bins[bin].low = cell[4];
      bins[bin].high = cell[5];
      add(bins[bin], cell);
    });
    return bins;
  };
  const binned = (m, cut) => (cut === "mass" ? massBins(m) : widthBins(m)).filter((bin) => bin.count > 0).map((bin) => {
    const n = (bin.count * bin.count) / bin.squares, forecast = bin.p / bin.count, frequency = bin.y / bin.count;
    const middle = (frequency + (Z * Z) / (2 * n)) / (1 + (Z * Z) / n);
    const reach = (Z * Math.sqrt(Math.max(frequency * (1 - frequency), 0) / n + (Z * Z) / (4 * n * n))) / (1 + (Z * Z) / n);
    const wide = Z * Math.sqrt(Math.max(forecast * (1 - forecast), 0) / n);
    return {
      low: bin.low, high: bin.high, count: bin.count, forecast, frequency,
      interval: [Math.max(middle - reach, 0), Math.min(middle + reach, 1)],
      band: [Math.max(forecast - wide, 0), Math.min(forecast + wide, 1)],
      gap: (bin.p - bin.y) / bin.count,
    };
  });
  const error = (bins) => bins.reduce((sum, bin) => sum + Math.abs(bin.gap) * bin.count, 0) / cells.n;

  // the picture, on the planes that the file draws on
  const svg = document.getElementById("reliability-picture");
  const plane = data.planes.bars, below = data.planes.counts;
  const share = (value, [low, high]) => (value - low) / (high - low);
  const across = (x) => plane.left + share(x, plane.x) * (plane.width - plane.left - plane.right);
  const up = (on, y) => on.height - on.bottom - share(y, on.y) * (on.height - on.top - on.bottom);
  const make = (name, attributes, text) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    return made;
  };
  const box = (on, x0, x1, y0, y1, kind) => make("rect", {
    x: across(x0), width: Math.max(across(x1) - across(x0), 0.5), class: kind,
    y: up(on, Math.max(y0, y1)), height: up(on, Math.min(y0, y1)) - up(on, Math.max(y0, y1)),
  });
  const line = (x0, y0, x1, y1, kind) => make("path", { d: `M${across(x0)} ${up(plane, y0)}L${across(x1)} ${up(plane, y1)}`, fill: "none", class: kind });
  const number = (value) => value.toLocaleString("en", { minimumFractionDigits: Number.isInteger(value) ? 0 : 1, maximumFractionDigits: 1 });
  const draw = (bins) => {
    const bars = svg.querySelector(".bars"), counts = svg.querySelector(".counts");
    const fullest = Math.max(...bins.map((bin) => bin.count));
    bars.replaceChildren(...bins.map((bin) => {
      const group = make("g", {}), middle = (bin.low + bin.high) / 2;
      group.append(
        make("title", {}, `${bin.low.toFixed(3)} to ${bin.high.toFixed(3)}: forecast ${bin.forecast.toFixed(3)}, observed ${bin.frequency.toFixed(3)}, ${number(bin.count)} samples`),
        box(plane, bin.low, bin.high, 0, bin.frequency, "frequency"),
        box(plane, bin.low, bin.high, bin.frequency, bin.forecast, `gap ${bin.forecast > bin.frequency ? "over" : "under"}`),
        box(plane, bin.low, bin.high, bin.band[0], bin.band[1], "band"),
        line(bin.low, bin.frequency, bin.high, bin.frequency, "level"),
        line(middle, bin.interval[0], middle, bin.interval[1], "whisker"),
      );
      return group;
    }));
    counts.replaceChildren(
      ...bins.map((bin) => box(below, bin.low, bin.high, 0, Math.max(bin.count / fullest, 0.012), "count")),
      make("text", { x: below.left, y: below.top - 6, class: "tick start most" }, `fullest bin: ${number(fullest)}`),
    );
  };
  const list = (bins) => {
    const body = document.querySelector("#reliability-table tbody");
    body.replaceChildren(...bins.map((bin) => {
      const row = document.createElement("tr");
      for (const [index, value] of [bin.low, bin.high, bin.count, bin.forecast, bin.frequency, ...bin.interval, bin.gap].entries()) {
        const cell = document.createElement("td");
        cell.className = "number";
        cell.dataset.value = String(value);
        cell.textContent = index === 2 ? number(value) : value.toFixed(4);
        row.append(cell);
      }
      return row;
    }));
  };

  const form = document.querySelector(".controls");
  if (form && svg) {
    const slider = document.getElementById("bins"), shown = document.getElementById("bins-value");
    const value = document.getElementById("ece-value");
    const mass = form.querySelector("[value=mass]");
    form.reset();
    if (!cells.mass.length) {
      mass.disabled = true;
      mass.parentElement.append(" (not with fractional weights)");
    }
    const update = (redraw) => {
      const m = Number(slider.value), bins = binned(m, form.querySelector(":checked").value), ece = error(bins);
      shown.value = slider.value;
      value.textContent = ece.toFixed(4);
      value.dataset.value = String(ece);
      if (redraw) { draw(bins); list(bins); }
    };
    form.addEventListener("input", () => update(true));
    form.addEventListener("submit", (event) => event.preventDefault());
    form.hidden = false;
    update(false);
  }

  // a table that is wider than its place says that it scrolls
  const measure = () => {
    for (const place of document.querySelectorAll(".scroll")) place.classList.toggle("wide", place.scrollWidth > place.clientWidth + 1);
  };
  addEventListener("resize", measure);
  addEventListener("toggle", measure, true);
  measure();

  // on paper nothing is folded away
  const opened = [];
  addEventListener("beforeprint", () => {
    for (const details of document.querySelectorAll("details:not([open])")) { details.open = true; opened.push(details); }
  });
  addEventListener("afterprint", () => { while (opened.length) opened.pop().open = false; });

  // tables as CSV: text that a spreadsheet would run is quoted
  const guarded = (cell) => {
    const text = cell.dataset.value ?? cell.textContent;
    const safe = !(cell.classList.contains("number") && cell.dataset.value) && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
    return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  const asCSV = (table) => [...table.rows].map((row) => [...row.cells].map(guarded).join(",")).join("\n") + "\n";
  for (const tools of document.querySelectorAll(".tools")) {
    const status = tools.querySelector("[role=status]");
    tools.hidden = false;
    tools.querySelector("button").addEventListener("click", async () => {
      const text = asCSV(tools.previousElementSibling.querySelector("table"));
      try {
        await navigator.clipboard.writeText(text);
        status.textContent = "Copied.";
      } catch {
        let area = tools.querySelector("textarea");
        if (!area) {
          area = document.createElement("textarea");
          area.setAttribute("aria-label", "Table as CSV");
          area.readOnly = true;
          tools.append(area);
        }
        area.value = text;
        area.focus();
        area.select();
        status.textContent = "Select and copy:";
      }
    });
  }
})();
