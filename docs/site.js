// The copy button of an interactive example copies what was typed, not the prompts and answers.
document.addEventListener("click", (event) => {
  const button = event.target.closest(".md-clipboard, .md-code__button");
  if (!button) return;
  const block = button.closest(".highlight, pre")?.querySelector("code");
  const lines = (block?.textContent ?? "").split("\n");
  if (!lines.some((line) => /^(>>>|\.\.\.) |^\$ /.test(line))) return;
  const typed = lines.filter((line) => /^(>>>|\.\.\.)( |$)|^\$ /.test(line)).map((line) => line.replace(/^(>>> ?|\.\.\. ?|\$ )/, ""));
  event.stopImmediatePropagation();
  navigator.clipboard.writeText(typed.join("\n"));
}, true);
