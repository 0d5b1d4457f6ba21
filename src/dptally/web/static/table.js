"use strict";
// A number shows only the fields that it needs; one that was not chosen shows its choice alone.
for (const part of document.querySelectorAll("fieldset.aggregate")) {
  const what = part.querySelector("select");
  const fit = () => {
    for (const field of part.querySelectorAll(".field")) {
      const wanted = (field.dataset.for || "").split(" ");
      field.hidden = !field.contains(what) && (!what.value || (field.dataset.for && !wanted.includes(what.value)));
      field.querySelector("input, select").disabled = field.hidden; // so that it is not sent
    }
  };
  what.addEventListener("change", fit);
  fit();
}
