// What a browser adds: search as one types, single keys, toasts that go. Every page works without it.
"use strict";
document.documentElement.classList.add("js");

// Selects that act at once.
for (const select of document.querySelectorAll("select[data-submit]")) {
  select.addEventListener("change", () => select.form.requestSubmit());
}

// Search as one types: the answer is the same list that the server would show without this.
for (const form of document.querySelectorAll("form[data-live]")) {
  const target = document.querySelector(form.dataset.live);
  const field = form.querySelector("input[type=search]");
  let timer, asked = 0;
  field.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(async () => {
      const number = ++asked;
      const query = new URLSearchParams(new FormData(form));
      history.replaceState(null, "", "?" + query);
      query.set("part", "1");
      const answer = await fetch(form.getAttribute("action") + "?" + query);
      const text = await answer.text();
      if (number === asked && answer.ok) {
        target.replaceChildren(...new DOMParser().parseFromString(text, "text/html").body.childNodes);
      }
    }, 160);
  });
}

// Toasts go by themselves after a while, unless somebody is in them.
const toast = document.querySelector(".toast");
if (toast) {
  const url = new URL(location);
  url.searchParams.delete("done");
  history.replaceState(null, "", url);
  const leave = () => (toast.matches(":hover, :focus-within") ? setTimeout(leave, 3000) : toast.remove());
  setTimeout(leave, 20000);
}

// Keys: those that a page names, j and k through lists, u for undo.
const rows = () => [...document.querySelectorAll("[data-row]")];
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  const typing = event.target.closest("input, textarea, select");
  if (event.key === "Escape") {
    if (typing) typing.blur();
    else if (toast) toast.remove();
    return;
  }
  if (typing) return;
  if (event.key === "j" || event.key === "k") {
    const all = rows();
    const named = document.querySelector(`[data-key="${event.key}"]`);
    if (all.length && !named) {
      const place = all.indexOf(document.activeElement) + (event.key === "j" ? 1 : -1);
      all[Math.max(0, Math.min(place, all.length - 1))].focus();
      event.preventDefault();
      return;
    }
  }
  if (event.key === "u" && toast && toast.querySelector("button")) {
    toast.querySelector("button").click();
    return;
  }
  const target = [...document.querySelectorAll("[data-key]")].find((each) => each.dataset.key === event.key);
  if (target) {
    event.preventDefault();
    target.focus();
    if (!target.matches("input, textarea, select")) target.click();
    const field = target.closest("details")?.querySelector("textarea, select");
    if (field && target.closest("details").open) field.focus();
  }
});
