// Draws every figure from the data beside it, and again at paper width for printing.
(function () {
  "use strict";
  const plots = [];
  const config = { responsive: true, displayModeBar: false };
  document.querySelectorAll("script[data-figure]").forEach(function (data) {
    const figure = JSON.parse(data.textContent);
    const place = document.getElementById(data.dataset.figure);
    figure.layout.autosize = true;
    Plotly.newPlot(place, figure.data, figure.layout, config);
    plots.push(place);
  });
  const paper = 680; // CSS pixels between the margins of an A4 page
  window.addEventListener("beforeprint", function () {
    plots.forEach(function (place) {
      Plotly.relayout(place, { width: place.closest(".two") ? paper / 2 - 12 : paper });
    });
  });
  window.addEventListener("afterprint", function () {
    plots.forEach(function (place) { Plotly.relayout(place, { width: null, autosize: true }); });
  });
})();
