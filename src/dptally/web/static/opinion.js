"use strict";
// A dropped or chosen file is sent as bytes; only the ending of its name goes with it.
(() => {
  const drop = document.getElementById("drop");
  const input = document.getElementById("file");
  const verdict = document.getElementById("verdict");
  const value = (id) => document.getElementById(id).value.trim();
  drop.hidden = false;

  const send = async (file) => {
    const dot = file.name.lastIndexOf(".");
    const given = new URLSearchParams({ ending: dot < 0 ? "" : file.name.slice(dot) });
    if (value("claimed-epsilon")) given.set("epsilon", value("claimed-epsilon"));
    if (value("claimed-delta")) given.set("delta", value("claimed-delta"));
    verdict.textContent = "Judging …";
    try {
      const response = await fetch(`/part/check?${given}`, {
        method: "POST",
        body: file,
        headers: { "content-type": "application/octet-stream", "x-dptally": verdict.dataset.secret },
      });
      verdict.innerHTML = await response.text();
    } catch {
      verdict.textContent = "The server does not answer, or the file is too large.";
    }
  };
  input.addEventListener("change", () => { if (input.files.length) send(input.files[0]); });
  for (const name of ["dragenter", "dragover"]) drop.addEventListener(name, (event) => { event.preventDefault(); drop.classList.add("over"); });
  drop.addEventListener("dragleave", () => drop.classList.remove("over"));
  drop.addEventListener("drop", (event) => {
    event.preventDefault();
    drop.classList.remove("over");
    if (event.dataTransfer.files.length) send(event.dataTransfer.files[0]);
  });
})();
