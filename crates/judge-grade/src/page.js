// Keys for what the page has buttons for, and the time that a row was looked at. Without it the page works by its forms alone.
"use strict";

const form = document.getElementById("answer");
const groups = [...document.querySelectorAll(".group")];
const press = (id) => document.getElementById(id)?.click();

// Only while the page is in sight.
let looked = 0;
let since = document.hidden ? null : performance.now();
const seconds = () => (looked + (since === null ? 0 : performance.now() - since)) / 1000;
document.addEventListener("visibilitychange", () => {
  if (document.hidden && since !== null) {
    looked += performance.now() - since;
    since = null;
  } else if (!document.hidden && since === null) {
    since = performance.now();
  }
});

let sent = null;
for (const each of document.forms) {
  each.addEventListener("submit", (event) => {
    // A second click is no second answer.
    if (sent) event.preventDefault();
    else sent = each;
  });
}
// A skip has a form of its own, and the note is in the other.
for (const each of [form, document.getElementById("skip")]) {
  each?.addEventListener("formdata", ({ formData }) => {
    formData.set("seconds", seconds().toFixed(2));
    formData.set("note", form.elements.note.value);
  });
}
// What is marked and noted stays while the row is not answered, however often the page is loaded, and so does the time.
const draft = form && [location.pathname, form.elements.rater.value, form.elements.row.value].join(" ");
if (form) {
  for (const [name, value] of JSON.parse(sessionStorage.getItem(draft) ?? "[]")) {
    if (name === "seconds") looked = 1000 * value;
    else form.elements[name].value = value;
  }
  document.querySelector(".note").open ||= form.elements.note.value !== "";
}
window.addEventListener("pagehide", () => {
  if (!form) return;
  if (sent === form || sent?.id === "skip") sessionStorage.removeItem(draft);
  else sessionStorage.setItem(draft, JSON.stringify([...new FormData(form)]));
});
// A page that the browser has kept is not a row to grade any more.
window.addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });

// As Markdown, or as it is.
const show = (raw) => {
  for (const text of document.querySelectorAll(".text")) text.hidden = raw;
  for (const text of document.querySelectorAll("pre.raw")) text.hidden = !raw;
};
const isRaw = () => sessionStorage.getItem("raw") === "yes";
document.getElementById("raw")?.addEventListener("click", () => {
  sessionStorage.setItem("raw", isRaw() ? "no" : "yes");
  show(isRaw());
});
if (isRaw()) show(true);

// The question that keys answer: the one with the focus, else the first without an answer.
let now = 0;
const isAnswered = (group) => group.querySelector(":checked") !== null;
const mark = (place) => {
  now = place;
  groups.forEach((group, at) => group.classList.toggle("now", at === now));
};
const go = (place) => {
  mark(Math.min(Math.max(place, 0), groups.length - 1));
  const group = groups[now];
  (group.querySelector(":checked") ?? group.querySelector("input")).focus({ preventScroll: true });
  group.scrollIntoView({ block: "nearest" });
};
const goToOpen = (from) => {
  const open = groups.findIndex((group, at) => at >= from && !isAnswered(group));
  const any = open >= 0 ? open : groups.findIndex((group) => !isAnswered(group));
  if (any >= 0) go(any);
};
// Arrows go through the options of a question, so that what they choose on the way is no answer yet.
let isArrow = false;
document.addEventListener("keyup", () => { isArrow = false; });
groups.forEach((group, at) => {
  group.addEventListener("focusin", () => mark(at));
  group.addEventListener("change", () => { if (!isArrow) goToOpen(at + 1); });
});
mark(Math.max(groups.findIndex((group) => !isAnswered(group)), 0));
document.getElementById("rest")?.addEventListener("click", () => {
  for (const group of groups) if (!isAnswered(group)) group.querySelector("input").click();
});

const open = (selector) => {
  const details = document.querySelector(selector);
  if (!details) return;
  details.open = !details.open;
  if (details.open) details.querySelector("textarea, button")?.focus();
};
const answers = (key) => {
  const within = groups.length > 0 ? groups[now] : form;
  const all = [...(within?.querySelectorAll("[data-keys]") ?? [])];
  return all.find((answer) => answer.dataset.keys.split(" ").includes(key));
};
document.addEventListener("keydown", (event) => {
  isArrow = event.key.startsWith("Arrow");
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  const at = event.target;
  // With Shift arrows select text, and in a box they scroll it.
  if (isArrow && (event.shiftKey || at.closest(".scroll"))) return;
  const writes = at.matches("textarea, input:not([type=radio])");
  if (event.key === "Escape") {
    at.blur();
    for (const details of document.querySelectorAll(".more details")) details.open = false;
    return;
  }
  if (writes || event.repeat) return;
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  const answer = answers(key);
  if (answer) answer.click();
  else if (key === "u") document.querySelector("button.undo:not(:disabled)")?.click();
  else if (key === "s") open(".skip");
  else if (key === "c") open(".note");
  else if (key === "r") press("raw");
  else if (key === "a") press("rest");
  else if (key === "Enter" && !at.matches("button, summary, a")) press(document.getElementById("submit") ? "submit" : "finish");
  else if (groups.length > 0 && (key === "ArrowDown" || key === "j")) go(now + 1);
  else if (groups.length > 0 && (key === "ArrowUp" || key === "k")) go(now - 1);
  else return;
  event.preventDefault();
});
