// Sorts and filters the rows. Without it they are listed in their order.
"use strict";

const list = document.querySelector(".rows");
if (list) {
  const rows = [...list.querySelectorAll(".row")];
  const heads = [...list.querySelectorAll(".heads button")];
  const [groups, words, least, shown] = ["groups", "words", "least", "shown"].map((id) => document.getElementById(id));
  const cell = (row, name) => {
    const found = row.querySelector(`summary > [data-of=${name}]`);
    return found?.dataset.exact ?? found?.textContent ?? "";
  };
  const number = (text) => (text === "" ? NaN : Number(text));

  for (const head of heads) {
    head.disabled = false;
    head.addEventListener("click", () => {
      const is = head.dataset.sorted === "down" ? "up" : "down";
      for (const other of heads) delete other.dataset.sorted;
      head.dataset.sorted = is;
      const of = (row) => cell(row, head.dataset.of);
      const [all, none] = [rows.filter((row) => of(row) !== ""), rows.filter((row) => of(row) === "")];
      const isNumeric = all.every((row) => !Number.isNaN(number(of(row))));
      const order = isNumeric ? (a, b) => number(of(a)) - number(of(b)) : (a, b) => (of(a) < of(b) ? -1 : Number(of(a) > of(b)));
      all.sort(is === "up" ? order : (a, b) => order(b, a));
      list.append(...all, ...none);
    });
  }

  const filter = () => {
    let count = 0;
    const sought = words.value.toLowerCase();
    for (const row of rows) {
      const isIn = (!groups?.value || cell(row, "group") === groups.value)
        && (!least?.value || number(cell(row, "difference")) >= Number(least.value))
        && row.textContent.toLowerCase().includes(sought);
      row.hidden = !isIn;
      count += Number(isIn);
    }
    shown.textContent = count === rows.length ? "" : `${count} of ${rows.length} shown.`;
  };
  for (const field of [groups, words, least]) field?.addEventListener("input", filter);
  if (groups) {
    const named = new Set(rows.map((row) => cell(row, "group")).filter((group) => group !== ""));
    for (const group of [...named].sort()) groups.append(new Option(group, group));
  }
  document.querySelector(".controls").hidden = false;
}
