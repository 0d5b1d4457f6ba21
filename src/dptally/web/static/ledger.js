"use strict";
// What may take long says so.
for (const form of document.querySelectorAll("form[data-busy]")) {
  form.addEventListener("submit", () => {
    const button = form.querySelector("button");
    const said = document.createElement("p");
    said.setAttribute("role", "status");
    const bar = document.createElement("progress");
    bar.setAttribute("aria-label", form.dataset.busy);
    said.append(form.dataset.busy, " ", bar);
    form.append(said);
    button.disabled = true;
  });
}
