"use strict";
(() => {
  const tests = JSON.parse(document.getElementById("data").textContent);
  const slider = document.getElementById("alpha");
  const level = document.getElementById("level");
  const number = (value) => Number(value); // "inf" below is not a number that JSON could hold
  const infinite = (value) => (value === "inf" ? Infinity : number(value));
  const short = (value) => (Number.isFinite(value) ? String(Number(value.toPrecision(4))) : "∞");

  // The (D+1-k)-th smallest null value, k being the number of p-values c/(D+1) at most alpha.
  const critical = (test, alpha) => {
    const size = test.distribution.length;
    let k = 0;
    while ((k + 1) / (size + 1) <= alpha) k += 1;
    return k === 0 ? Infinity : infinite(test.distribution[size - k]);
  };

  // As `hullcal.verdicts.sentence` decides; the words are its own.
  const sentence = (own, alpha) => {
    const rejecting = own.filter((test) => test.adjusted <= alpha);
    const certain = rejecting.filter((test) => !test.doubtful);
    const heard = [certain, rejecting, own].find((some) => some.length);
    const test = heard.reduce((a, b) => (b.adjusted < a.adjusted ? b : a));
    const { answer } = test;
    const [low, high] = test.interval.map((end) => (test.adjusted / test.pvalue) * end);
    const close = low <= alpha && alpha <= high ? answer.close : "";
    const said = (rejecting.length ? answer.rejecting : answer.standing) + close;
    const look = !rejecting.length ? "perhaps" : certain.length ? "no" : "unclear";
    return { look, text: said };
  };

  const answers = (part, alpha) => {
    const own = tests.filter((test) => test.part === part);
    const nulls = [...new Set(own.map((test) => test.null))];
    return nulls.map((name) => sentence(own.filter((test) => test.null === name), alpha));
  };

  const decide = () => {
    const alpha = number(slider.value);
    level.textContent = slider.value;
    for (const row of document.querySelectorAll(".tests tbody tr")) {
      const test = tests[number(row.dataset.test)];
      const rejected = test.adjusted <= alpha;
      row.classList.toggle("rejected", rejected);
      row.querySelector(".decision").textContent = rejected ? "rejected" : "not rejected";
      row.querySelector(".critical").textContent = short(critical(test, alpha));
    }
    for (const verdict of document.querySelectorAll(".verdict")) {
      const lines = answers(number(verdict.dataset.part), alpha).map(({ look, text }) => {
        const line = document.createElement("p");
        line.className = `answer ${look}`;
        line.textContent = text;
        return line;
      });
      verdict.replaceChildren(...lines);
    }
  };

  const sort = (heading, column) => {
    const ascending = heading.getAttribute("aria-sort") !== "ascending";
    for (const other of heading.parentNode.children) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", ascending ? "ascending" : "descending");
    const key = (row) => row.children[column].textContent.replace("∞", "Infinity");
    const order =
      heading.dataset.kind === "number"
        ? (a, b) => number(key(a)) - number(key(b))
        : (a, b) => key(a).localeCompare(key(b));
    const body = heading.closest("table").querySelector("tbody");
    const rows = [...body.children].sort(order);
    body.replaceChildren(...(ascending ? rows : rows.reverse()));
  };

  for (const table of document.querySelectorAll(".tests")) {
    table.querySelectorAll("th").forEach((heading, column) => {
      heading.querySelector("button").addEventListener("click", () => sort(heading, column));
    });
  }
  // Values of a figure. Without this script browsers show the titles, though not to fingers and keys.
  const tip = document.getElementById("tip");
  const words = new Map();
  let shown = null;

  const hide = () => {
    if (shown) shown.classList.remove("now");
    shown = null;
    tip.hidden = true;
  };

  const show = (mark, x, y) => {
    if (mark !== shown) {
      hide();
      shown = mark;
      mark.classList.add("now");
      tip.textContent = words.get(mark);
    }
    tip.hidden = false;
    const room = (place, size, whole) => Math.max(4, Math.min(place, whole - size - 4));
    const above = y - tip.offsetHeight - 10;
    const left = room(x + 12, tip.offsetWidth, document.documentElement.clientWidth);
    const top = room(above < 4 ? y + 16 : above, tip.offsetHeight, window.innerHeight);
    // On the page, not on the window: a focus that scrolls takes the words along.
    tip.style.left = `${left + window.scrollX}px`;
    tip.style.top = `${top + window.scrollY}px`;
  };

  const walk = (figure, marks) => {
    const pointed = (event) => {
      const mark = event.target.closest(".mark");
      if (mark) show(mark, event.clientX, event.clientY);
      else hide();
    };
    const focused = (place) => {
      const mark = marks[(place + marks.length) % marks.length];
      const box = mark.getBoundingClientRect();
      show(mark, box.left + box.width / 2, box.top + Math.min(box.height / 2, 40));
    };
    figure.addEventListener("pointermove", pointed);
    figure.addEventListener("pointerdown", pointed);
    // A finger that is lifted leaves; what it asked for stays until the next touch.
    figure.addEventListener("pointerleave", (event) => event.pointerType === "touch" || hide());
    figure.addEventListener("focus", () => figure.matches(":focus-visible") && focused(0));
    figure.addEventListener("blur", hide);
    figure.addEventListener("keydown", (event) => {
      const at = marks.indexOf(shown);
      const places = { ArrowRight: at + 1, ArrowDown: at + 1, Home: 0, End: marks.length - 1 };
      places.ArrowLeft = places.ArrowUp = Math.max(at, 0) - 1;
      if (event.key === "Escape") hide();
      if (!(event.key in places)) return;
      event.preventDefault();
      focused(places[event.key]);
    });
  };

  for (const figure of document.querySelectorAll("figure svg[tabindex]")) {
    const marks = [...figure.querySelectorAll(".mark")];
    for (const mark of marks) {
      words.set(mark, mark.textContent);
      mark.replaceChildren(); // or the browser would say it a second time
    }
    walk(figure, marks);
  }
  document.addEventListener("pointerdown", (event) => event.target.closest("figure svg") || hide());

  // What the page says at first is the run's own decision; the slider decides again.
  slider.addEventListener("input", decide);
})();
