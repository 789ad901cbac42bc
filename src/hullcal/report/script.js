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
    while (k < size + 1 && (k + 1) / (size + 1) <= alpha) k += 1;
    return k === 0 ? Infinity : k > size ? -Infinity : infinite(test.distribution[size - k]);
  };

  const answers = (part, alpha) => {
    const own = tests.filter((test) => test.part === part);
    const byNull = new Map();
    for (const test of own) {
      const best = byNull.get(test.null);
      if (!best || test.adjusted < best.adjusted) byNull.set(test.null, test);
    }
    const word = new Set(own.map((test) => test.measure)).size > 1 ? "adjusted p" : "p";
    return [...byNull.values()].map((test) => {
      const figure = `(${word} = ${Number(test.adjusted.toPrecision(3))} by ${test.measure})`;
      const no = test.adjusted <= alpha;
      const start = no ? "No: the data speak" : "Perhaps: the data do not speak";
      return { no, text: `${start} against the claim that ${test.hypothesis} ${figure}.` };
    });
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
      const lines = answers(number(verdict.dataset.part), alpha).map(({ no, text }) => {
        const line = document.createElement("p");
        line.className = no ? "answer no" : "answer";
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
  // What the page says at first is the run's own decision; the slider decides again.
  slider.addEventListener("input", decide);
})();
