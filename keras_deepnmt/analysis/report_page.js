"use strict";
document.documentElement.classList.add("scripted");

// Values under the pointer, at once; without this script browsers show titles.
const value = document.body.appendChild(document.createElement("div"));
value.id = "value";
for (const hit of document.querySelectorAll(".hit")) {
  hit.dataset.value = hit.textContent;
  hit.replaceChildren();
}
document.addEventListener("pointermove", (event) => {
  value.textContent = event.target.dataset?.value ?? "";
  const left = Math.min(event.clientX + 14, innerWidth - value.offsetWidth - 4);
  value.style.left = `${left}px`;
  value.style.top = `${event.clientY + 16}px`;
});

// A cue and a stop of the keyboard where something is wider than the page.
function showCues() {
  for (const box of document.querySelectorAll(".scroll")) {
    const scrolls = box.scrollWidth > box.clientWidth + 1;
    box.parentElement.classList.toggle("scrolls", scrolls);
    if (scrolls) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  }
}
addEventListener("resize", showCues);
addEventListener("toggle", showCues, true);
showCues();

// Tables are sorted by a column: its numbers, or else its texts.
const numberOf = (text) => Number.parseFloat(text.replace(/[,\s]|[±<].*/g, ""));
const byNumber = (a, b) => numberOf(a) - numberOf(b);
function sortTable(heading) {
  const body = heading.closest("table").tBodies[0];
  const rows = [...body.rows];
  const place = heading.cellIndex;
  const textOf = (row) => row.cells[place].textContent;
  const numeric = rows.every((r) => !textOf(r) || !isNaN(numberOf(textOf(r))));
  const compare = numeric ? byNumber : (a, b) => a.localeCompare(b);
  const down = heading.ariaSort !== "descending";
  for (const other of heading.parentElement.cells) other.ariaSort = null;
  heading.ariaSort = down ? "descending" : "ascending";
  const sign = down ? -1 : 1;
  rows.sort((a, b) => sign * compare(textOf(a), textOf(b)));
  body.append(...rows);
}
for (const heading of document.querySelectorAll("thead th")) {
  if (heading.closest("table").tBodies[0].rows.length < 3) continue;
  const button = document.createElement("button");
  button.type = "button";
  button.append(...heading.childNodes);
  button.addEventListener("click", () => sortTable(heading));
  heading.append(button);
}

// Sentences are put in order, searched, and shown some at a time.
for (const box of document.querySelectorAll(".sentences")) {
  const [order, search] = box.querySelectorAll("select, input");
  const count = box.querySelector("output");
  const more = box.querySelector(".more");
  const list = box.querySelector("ol");
  const items = [...list.children];
  let number;
  function show() {
    const [key, sign] = order.value.split(" ");
    items.sort((a, b) => sign * (a.dataset[key] - b.dataset[key]));
    list.append(...items);
    const asked = search.value.toLowerCase();
    const found = items.filter((item) =>
      item.textContent.toLowerCase().includes(asked),
    );
    for (const item of items) item.classList.remove("shown");
    for (const item of found.slice(0, number)) item.classList.add("shown");
    const shown = Math.min(number, found.length);
    count.textContent = `${shown} of ${found.length} sentences shown`;
    more.hidden = shown === found.length;
  }
  function restart() {
    number = 10;
    show();
  }
  order.addEventListener("change", restart);
  search.addEventListener("input", restart);
  more.addEventListener("click", () => {
    number += 20;
    show();
  });
  restart();
}
