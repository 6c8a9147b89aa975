// A click on a point of a distribution opens its run.
(function () {
  "use strict";
  document.addEventListener("plots-drawn", function () {
    document.querySelectorAll(".points .plot").forEach(function (place) {
      place.on("plotly_click", function (event) {
        const found = event.points[0].customdata;
        if (found && /^\/run\//.test(found[0])) location.assign(found[0]);
      });
    });
  });
})();
