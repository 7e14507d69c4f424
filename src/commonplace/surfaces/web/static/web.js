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

// Review: one card at a time is the one that keys mean.
const cards = [...document.querySelectorAll("[data-card]")];
if (cards.length) {
  let place = 0;
  const show = (next, move) => {
    cards[place].classList.remove("on");
    place = Math.max(0, Math.min(next, cards.length - 1));
    cards[place].classList.add("on");
    if (move) {
      cards[place].focus({ preventScroll: true });
      cards[place].scrollIntoView({ block: "nearest" });
    }
  };
  show(0, false);
  for (const [number, card] of cards.entries()) card.addEventListener("focusin", () => show(number, false));
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select")) return;
    if (event.key === "n" || event.key === "p") {
      show(place + (event.key === "n" ? 1 : -1), true);
      return;
    }
    const target = cards[place].querySelector(`[data-card-key="${event.key}"]`);
    if (target) {
      event.preventDefault();
      target.click();
    }
  });
}

// Prompt: a line that is dropped on another asks what would change if it stood there.
const dragged = [...document.querySelectorAll("[data-drag]")];
let held = null;
for (const row of dragged) {
  row.draggable = true;
  row.addEventListener("dragstart", (event) => {
    held = row;
    event.dataTransfer.effectAllowed = "move";
    event.dataTransfer.setData("text/plain", row.dataset.drag);
  });
  row.addEventListener("dragover", (event) => {
    if (held && held !== row) {
      event.preventDefault();
      row.classList.add("over");
    }
  });
  row.addEventListener("dragleave", () => row.classList.remove("over"));
  row.addEventListener("drop", (event) => {
    event.preventDefault();
    const url = new URL(location);
    const side = dragged.indexOf(held) > dragged.indexOf(row) ? "before" : "after";
    url.searchParams.set("try", held.dataset.drag);
    url.searchParams.set("to", `${side}:${row.dataset.drag}`);
    url.hash = "trial";
    location.assign(url);
  });
}
