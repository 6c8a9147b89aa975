// Draws every figure from the data beside it: for light and dark, for phone, desk and paper; and, on request, its values
// as a table. When all are drawn, <html data-plots="drawn">.
(function () {
  "use strict";
  const PAPER = 680; // CSS pixels between the margins of an A4 page
  const SHORTER = 0.85; // plots on paper against those on the screen
  const PHONE = 480;
  const TABLE_ROWS = 400;
  const config = { responsive: false, displayModeBar: false };
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  // Ink and paper change places; the scheme's colours keep their hue, and those too dark for the ground get lighter.
  const ON_DARK = {
    "#000000": "#f2f2f2", black: "#f2f2f2", "#222222": "#dcdcdc", "#777777": "#a6a6a6", "#444444": "#c4c4c4",
    "#0072b2": "#2f93d6", "#332288": "#9385e6", "#882255": "#cf5f99", white: "#14171a", "#ffffff": "#14171a", "#e4e4e4": "#343a40",
  };

  function recoloured(value) {
    if (typeof value === "string") {
      const known = ON_DARK[value.toLowerCase()];
      return known || value.replace(/rgba\(255, ?255, ?255,/, "rgba(20, 23, 26,");
    }
    if (Array.isArray(value)) return typeof value[0] === "number" ? value : value.map(recoloured);
    if (value === null || typeof value !== "object") return value;
    return Object.fromEntries(Object.entries(value).map(function (entry) {
      return [entry[0], recoloured(entry[1])];
    }));
  }

  function figureOf(place) {
    return JSON.parse(document.querySelector('script[data-figure="' + place.id + '"]').textContent);
  }

  function inLines(text, letters) {
    return text.split(" ").reduce(function (made, word) {
      const last = made[made.length - 1];
      if (last && (last + " " + word).length <= letters) made[made.length - 1] = last + " " + word;
      else made.push(word);
      return made;
    }, []).join("<br>");
  }

  // Where there is little room, titles would run into each other or out of the plot: they are broken into lines.
  function brokenTitles(annotations, width) {
    return annotations.map(function (one) {
      const beside = annotations.filter(function (other) { return other.yref === "paper" && other.y === one.y; }).length;
      const letters = Math.floor(width / Math.max(1, beside) / 7);
      if (one.yref !== "paper" || one.showarrow || !one.text || (beside < 2 && one.text.length <= letters)) return one;
      return Object.assign({}, one, { text: inLines(one.text, letters), font: { size: 10 } });
    });
  }

  function brokenAxisTitles(layout, width) {
    Object.keys(layout).forEach(function (name) {
      const axis = layout[name];
      if (!/^xaxis\d*$/.test(name) || !axis.title || !axis.title.text) return;
      const share = axis.domain ? axis.domain[1] - axis.domain[0] : 1;
      const title = Object.assign({}, axis.title, { text: inLines(axis.title.text, Math.floor((width - 70) * share / 7)) });
      layout[name] = Object.assign({}, axis, { title: title });
    });
  }

  function show(place, width, night, paper) {
    let figure = figureOf(place);
    if (night) figure = recoloured(figure);
    const layout = figure.layout;
    layout.autosize = false;
    layout.width = width;
    if (paper) layout.height = Math.round((layout.height || 400) * SHORTER);
    // Colour bars and legends beside the plot take the room that a phone does not have.
    if (width < PHONE) {
      layout.font = Object.assign({}, layout.font, { size: 11 });
      layout.legend = Object.assign({}, layout.legend, { font: { size: 10 } });
      if (layout.annotations) layout.annotations = brokenTitles(layout.annotations, width);
      brokenAxisTitles(layout, width);
      layout.margin = Object.assign({}, layout.margin, { r: Math.min((layout.margin || {}).r || 12, 12) });
    }
    Plotly.react(place, figure.data, layout, config);
    place.dataset.width = paper ? 0 : width; // after printing it is drawn again
    place.dataset.night = night;
  }

  function fit(place) {
    const width = Math.floor(place.clientWidth);
    if (width > 0 && (Number(place.dataset.width) !== width || place.dataset.night !== String(dark.matches))) {
      show(place, width, dark.matches);
    }
  }

  // Where a series is drawn: the title above its panel, and what its axes measure, as the figure says it.
  function panelOf(trace, layout) {
    const axis = function (id) { return layout[id.replace(/^([xy])/, "$1axis")] || {}; };
    const words = function (one) {
      return (one.title && one.title.text) || (one.matches ? words(axis(one.matches)) : "");
    };
    const x = axis(trace.xaxis || "x");
    const y = axis(trace.yaxis || "y");
    const across = x.domain || [0, 1];
    const top = ((y.overlaying ? axis(y.overlaying) : y).domain || [0, 1])[1];
    const title = (layout.annotations || []).find(function (one) {
      const above = one.yref === "paper" && Math.abs(one.y - top) < 1e-6 && one.x >= across[0] && one.x <= across[1];
      return above || one.yref === (trace.yaxis || "y") + " domain";
    });
    // Where series stand side by side at a named place, x is a number beside that of the place.
    const names = (x.ticktext || []).every(function (one) { return Number.isNaN(Number(one)); }) ? x.ticktext : null;
    const named = function (value) {
      const at = names ? x.tickvals.findIndex(function (one) { return Math.abs(one - value) < 0.5; }) : -1;
      return at < 0 ? value : names[at];
    };
    return { title: title ? title.text : "", x: words(x), y: words(y), named: named };
  }

  function common(panels, name, otherwise) {
    const first = panels.length > 0 ? panels[0][name] : "";
    return panels.every(function (one) { return one[name] === first; }) ? first || otherwise : otherwise;
  }

  // Names in figures are escaped, because plotly takes them as HTML.
  function withoutTags(text) {
    return new DOMParser().parseFromString(text, "text/html").body.textContent;
  }

  // One row a point, as the figure has them; a screen reader reads what the eye sees.
  function valuesTable(place) {
    const table = document.createElement("table");
    const add = function (row, tag, text) {
      const cell = document.createElement(tag);
      cell.textContent = withoutTags(text);
      if (tag === "th") cell.scope = "col";
      row.appendChild(cell);
    };
    const word = function (value) {
      if (value === null || value === undefined || Number.isNaN(value)) return "–";
      return typeof value === "number" ? String(Number(value.toPrecision(6))) : String(value);
    };
    table.createCaption().textContent = "Values of the figure: " + place.getAttribute("aria-label");
    const head = table.createTHead().insertRow();
    const layout = figureOf(place).layout;
    const traces = place._fullData.filter(function (trace) { return trace.meta !== "ground"; });
    const panels = traces.map(function (trace) { return panelOf(trace, layout); });
    const x = common(panels, "x", "x");
    const y = common(panels, "y", "y");
    const places = panels.map(function (one) { return [one.title, y === "y" ? one.y : ""].filter(Boolean).join(", "); });
    const several = new Set(places).size > 1;
    ["Series"].concat(several ? ["Panel"] : [], [x, y]).forEach(function (one) { add(head, "th", one); });
    const body = table.createTBody();
    let left = TABLE_ROWS;
    let total = 0;
    traces.forEach(function (trace, at) {
      const xs = Array.from(trace.x || trace.labels || []);
      const ys = Array.from(trace.y || trace.values || []);
      total += Math.max(xs.length, ys.length);
      for (let i = 0; i < Math.max(xs.length, ys.length) && left > 0; i += 1, left -= 1) {
        const row = body.insertRow();
        add(row, "td", trace._input.name || "–");
        if (several) add(row, "td", places[at]);
        add(row, "td", word(panels[at].named(xs[i])));
        add(row, "td", word(ys[i]));
      }
    });
    const box = document.createElement("div");
    box.className = "wide";
    box.tabIndex = 0;
    box.setAttribute("role", "region");
    box.setAttribute("aria-label", "Values of the figure");
    box.appendChild(table);
    if (total > TABLE_ROWS) {
      const note = document.createElement("p");
      note.className = "note";
      note.textContent = "The first " + TABLE_ROWS + " of " + total + " values.";
      box.appendChild(note);
    }
    return box;
  }

  async function library() {
    if (window.Plotly) return; // a server gave it as a file of its own
    const text = document.getElementById("plotly-packed").textContent;
    const packed = Uint8Array.from(atob(text), function (letter) { return letter.charCodeAt(0); });
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    const script = document.createElement("script");
    script.textContent = await new Response(stream).text();
    document.head.appendChild(script);
  }

  // Lets the page answer between two figures. A timer would be slowed down in a tab that is not in front.
  function pause() {
    return new Promise(function (done) {
      const channel = new MessageChannel();
      channel.port1.onmessage = done;
      channel.port2.postMessage(null);
    });
  }

  async function draw() {
    const plots = Array.from(document.querySelectorAll(".plot"));
    if (plots.length > 0) await library();
    for (const place of plots) {
      fit(place);
      await pause();
    }
    document.querySelectorAll("details.data").forEach(function (details) {
      details.addEventListener("toggle", function () {
        if (details.open && details.childElementCount === 1) {
          details.appendChild(valuesTable(document.getElementById(details.dataset.of)));
        }
      });
    });
    const again = function () { plots.forEach(fit); };
    new ResizeObserver(again).observe(document.getElementById("main"));
    dark.addEventListener("change", again);
    document.querySelectorAll("details").forEach(function (details) { details.addEventListener("toggle", again); });
    let opened = [];
    window.addEventListener("beforeprint", function () {
      opened = Array.from(document.querySelectorAll("details.long:not([open])"));
      opened.forEach(function (details) { details.open = true; });
      plots.forEach(function (place) { show(place, place.closest(".two") ? PAPER / 2 - 12 : PAPER, false, true); });
    });
    window.addEventListener("afterprint", function () {
      opened.forEach(function (details) { details.open = false; });
      again();
    });
    document.dispatchEvent(new Event("plots-drawn"));
    document.documentElement.dataset.plots = "drawn";
  }

  draw().catch(function (error) {
    console.error("the figures cannot be drawn", error);
    const note = document.createElement("p");
    note.className = "warning";
    note.setAttribute("role", "alert");
    note.textContent = "This browser cannot draw the plots of this page (" + error.message + "). The tables have the figures.";
    document.getElementById("main").prepend(note);
    document.documentElement.dataset.plots = "failed";
  });
})();
