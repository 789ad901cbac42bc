"use strict";
// The slider decides again at another level, as `hullcal.verdicts` did at that of the run.
(() => {
  const parts = JSON.parse(document.getElementById("data").textContent);
  const slider = document.getElementById("alpha");

  const answer = (tests, alpha) => {
    const rejecting = tests.filter((test) => test.adjusted <= alpha);
    const certain = rejecting.filter((test) => !test.doubtful);
    const heard = [certain, rejecting, tests].find((some) => some.length);
    const test = heard.reduce((a, b) => (b.adjusted < a.adjusted ? b : a));
    const [low, high] = test.interval;
    const line = document.createElement("p");
    const look = !rejecting.length ? "perhaps" : certain.length ? "no" : "unclear";
    line.className = `answer ${look}`;
    line.textContent = rejecting.length ? test.rejecting : test.standing;
    if (low <= alpha && alpha <= high) line.textContent += test.close;
    return line;
  };

  // What the page says at first is the run's own decision.
  slider.addEventListener("input", () => {
    const alpha = Number(slider.value);
    document.getElementById("level").textContent = slider.value;
    document.querySelectorAll(".decision").forEach((cell, i) => {
      const rejected = parts.flat()[i].adjusted <= alpha;
      cell.classList.toggle("rejected", rejected);
      cell.textContent = rejected ? "rejected" : "not rejected";
    });
    document.querySelectorAll(".verdict").forEach((verdict, i) => {
      const nulls = [...new Set(parts[i].map((test) => test.null))];
      const own = (name) => parts[i].filter((test) => test.null === name);
      verdict.replaceChildren(...nulls.map((name) => answer(own(name), alpha)));
    });
  });
})();
