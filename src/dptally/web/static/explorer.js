"use strict";
// Sliders ask for the quick part while they move; the rest follows when they rest.
(() => {
  const form = document.getElementById("question");
  const field = (name) => document.getElementById(name);
  const quick = field("answer");
  const later = { more: field("more"), noise: field("noise-answer"), samplers: field("samplers") };
  let asked = 0, running = false, again = false, timer = 0;

  const shown = (value, name) => {
    const number = 10 ** value;
    if (name === "steps") return String(Math.max(1, Math.round(number)));
    return String(Number(number.toPrecision(3)));
  };
  const place = (slider) => {
    const value = Math.log10(Number(field(slider.dataset.for).value));
    if (Number.isFinite(value)) slider.value = String(value);
  };
  const address = () => {
    const given = new URLSearchParams();
    for (const name of ["noise", "rate", "steps", "delta", "plan", "target", "records"]) {
      const input = field(name);
      if (input && input.value.trim()) given.set(name, input.value.trim());
    }
    return given;
  };
  const part = async (name, into, more = "") => {
    const mine = asked;
    into.classList.add("busy");
    try {
      const response = await fetch(`/part/${name}?${address()}${more}`);
      const text = await response.text();
      if (mine !== asked && name !== "quick") return;
      into.innerHTML = text;
    } catch {
      into.textContent = "The server does not answer.";
    } finally {
      into.classList.remove("busy");
    }
  };
  const samplers = async (more = "") => {
    await part("samplers", later.samplers, more);
    const every = field("every");
    if (every) { every.hidden = false; every.addEventListener("click", () => samplers("&every=1")); }
  };
  const rest = () => {
    if (!later.more) return;
    part("more", later.more);
    part("noise", later.noise);
    samplers();
  };
  // one question at a time: while one is on its way, only the newest waits
  const answer = async () => {
    if (running) { again = true; return; }
    running = true;
    do { again = false; await part("quick", quick); } while (again);
    running = false;
    const share = field("share");
    if (share) history.replaceState(null, "", share.getAttribute("href"));
  };
  const changed = () => {
    asked += 1;
    answer();
    clearTimeout(timer);
    timer = setTimeout(rest, 500);
  };

  for (const slider of document.querySelectorAll("input.slider")) {
    const name = slider.dataset.for;
    slider.hidden = false;
    place(slider);
    slider.addEventListener("input", () => {
      field(name).value = shown(Number(slider.value), name);
      if (name !== "delta") field("plan").value = "";
      changed();
    });
    field(name).addEventListener("change", () => {
      place(slider);
      if (name !== "delta") field("plan").value = "";
      changed();
    });
  }
  field("plan").addEventListener("change", changed);
  for (const name of ["target", "records"]) if (field(name)) field(name).addEventListener("change", () => { asked += 1; rest(); });
  form.addEventListener("submit", (event) => {
    if (!later.more) return;
    event.preventDefault();
    changed();
  });
  field("all").hidden = Boolean(later.more);
  if (later.more && later.more.querySelector(".waiting")) {
    // the button that the texts name is for pages without scripts: here the answers come by themselves
    for (const text of document.querySelectorAll(".waiting")) text.textContent = "Being computed …";
    rest();
  }
})();
