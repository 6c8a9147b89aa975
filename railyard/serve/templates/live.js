// A part of a page that changes by itself: <div id="live" data-every="2">. It is asked for again so often, as long as the
// page is in front; data-next in it leads to another page. Where it is gone, the page is
// loaded anew; with data-whole, too, as soon as the answer is more than "not yet".
(function () {
  "use strict";
  const place = document.getElementById("live");
  if (!place || !place.dataset.every) return;

  function focused() {
    const at = document.activeElement;
    if (!at || !place.contains(at)) return null;
    return { href: at.getAttribute("href"), name: at.getAttribute("name"), label: at.getAttribute("aria-label") };
  }

  function focusAgain(before) {
    if (!before) return;
    const same = Array.from(place.querySelectorAll("a, button, [tabindex]")).find(function (one) {
      return one.getAttribute("href") === before.href && one.getAttribute("name") === before.name &&
        one.getAttribute("aria-label") === before.label;
    });
    if (same) same.focus();
  }

  function show(fresh) {
    const before = focused();
    place.replaceChildren.apply(place, Array.from(fresh.childNodes));
    focusAgain(before);
  }

  async function again() {
    if (document.visibilityState !== "visible") return true;
    const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = page.getElementById("live");
    if (!fresh || (place.dataset.whole && answer.status !== 202)) {
      location.reload();
      return false;
    }
    if (fresh.dataset.next) {
      location.assign(fresh.dataset.next);
      return false;
    }
    show(fresh);
    return Boolean(fresh.dataset.every);
  }

  function later() {
    setTimeout(function () {
      again().then(function (more) { if (more) later(); }, later);
    }, Number(place.dataset.every) * 1000);
  }

  later();
})();
