// Moves a cursor over the strips of a run and reads the values under it, by slider, by click or playing.
(function () {
  "use strict";
  const timeline = JSON.parse(document.getElementById("timeline").textContent);
  const place = document.getElementById("figure-1");
  const cursor = document.getElementById("cursor");
  const slider = document.getElementById("time");
  const button = document.getElementById("play");
  const speed = document.getElementById("speed");
  const columns = ["capacity", "delivered", "sent", "re-injected", "in flight", "cwnd", "smoothed RTT", "buffer"];
  let readings = []; // what can be read out: row, column, unit, x, y
  let playing = false;
  let before = 0;

  function valueAt(reading, t) {
    const xs = reading.x;
    let low = 0;
    let high = xs.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (xs[middle] <= t + 1e-9) low = middle + 1; else high = middle;
    }
    const value = low === 0 ? null : reading.y[low - 1];
    return value === null || value === undefined ? "–" : Number(value.toPrecision(4)) + " " + reading.unit;
  }

  function collect() {
    readings = place._fullData.filter(function (trace) { return trace.meta && trace.meta.row; }).map(function (trace) {
      return { row: trace.meta.row, column: trace.meta.column, unit: trace.meta.unit, x: trace.x, y: trace.y };
    });
    const shown = columns.filter(function (name) { return readings.some(function (r) { return r.column === name; }); });
    const head = document.getElementById("state-head").insertRow();
    [""].concat(shown).forEach(function (name) {
      const cell = document.createElement("th");
      cell.scope = "col";
      cell.textContent = name;
      head.appendChild(cell);
    });
    const rows = Array.from(new Set(readings.map(function (reading) { return reading.row; })));
    rows.forEach(function (name) {
      const row = document.getElementById("state").insertRow();
      const title = document.createElement("th");
      title.scope = "row";
      title.textContent = name;
      row.appendChild(title);
      shown.forEach(function (column) {
        const cell = row.insertCell();
        const reading = readings.find(function (r) { return r.row === name && r.column === column; });
        if (reading) reading.cell = cell; else cell.textContent = "–";
      });
    });
  }

  function show() {
    const t = Number(slider.value);
    const axis = place._fullLayout.xaxis;
    const size = place._fullLayout._size;
    const x = axis.l2p(t);
    cursor.hidden = x < 0 || x > axis._length;
    cursor.style.transform = "translateX(" + (size.l + x) + "px)";
    cursor.style.top = size.t + "px";
    cursor.style.height = size.h + "px";
    const stalled = timeline.stalls.some(function (stall) { return stall[0] <= t && t < stall[1]; });
    document.getElementById("now").textContent = t.toFixed(2) + " s" + (stalled ? ", stalled" : "");
    slider.setAttribute("aria-valuetext", t.toFixed(2) + " seconds" + (stalled ? ", stalled" : ""));
    readings.forEach(function (reading) { reading.cell.textContent = valueAt(reading, t); });
    const last = timeline.moments.filter(function (moment) { return moment[0] <= t; }).slice(-3);
    document.getElementById("last").textContent = last.length === 0 ? "Nothing has happened yet." :
      last.map(function (moment) { return moment[0].toFixed(2) + " s: " + moment[1]; }).join(" · ");
  }

  function step(stamp) {
    if (!playing) return;
    const next = Number(slider.value) + (stamp - before) / 1000 * Number(speed.value);
    // The slider keeps whole steps only, so time that is less than a step is kept for the next frame.
    if (next - Number(slider.value) >= timeline.step_s) {
      slider.value = next;
      before = stamp;
      show();
    }
    if (next >= timeline.end_s) play(false); else requestAnimationFrame(step);
  }

  function play(on) {
    playing = on;
    button.textContent = on ? "Pause" : "Play";
    if (!on) return;
    if (Number(slider.value) >= timeline.end_s) slider.value = 0;
    before = performance.now();
    requestAnimationFrame(step);
  }

  // What a chunk's row of the table says, beside the strips.
  function explain(number) {
    const row = document.getElementById("chunk-" + number);
    const said = row.querySelector("details");
    const why = document.getElementById("why");
    why.textContent = said ? said.dataset.said :
      "Chunk " + number + ": there are no qlogs of both ends here; railyard explain RUN --chunk " + number +
      " repeats a run in virtual time to tell.";
    why.insertAdjacentText("beforeend", " ");
    const link = document.createElement("a");
    link.href = "#" + row.id;
    link.textContent = "In the table.";
    link.addEventListener("click", function () {
      for (let place = row.parentElement; place; place = place.parentElement) if (place.tagName === "DETAILS") place.open = true;
      if (said) said.open = true;
    });
    why.appendChild(link);
  }

  function clicked(event) {
    const point = event.points[0];
    slider.value = point.x;
    show();
    if (point.data.meta && point.data.meta.chunk) explain(point.customdata);
  }

  function begin() {
    collect();
    slider.addEventListener("input", show);
    button.addEventListener("click", function () { play(!playing); });
    place.on("plotly_click", clicked);
    place.on("plotly_afterplot", show);
    show();
    document.documentElement.dataset.replay = "ready";
  }

  document.addEventListener("plots-drawn", begin);
})();
