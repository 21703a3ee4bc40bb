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

// A stop of the keyboard where something scrolls, and a cue where it is wider
// than the page.
function showCues() {
  for (const box of document.querySelectorAll(".scroll")) {
    const isWide = box.scrollWidth > box.clientWidth + 1;
    const isHigh = box.scrollHeight > box.clientHeight + 1;
    box.parentElement.classList.toggle("scrolls", isWide);
    if (isWide || isHigh) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  }
}
addEventListener("resize", showCues);
addEventListener("toggle", showCues, true);
showCues();

// Tables are sorted by a column: its numbers, or else its texts, in which 2-9
// is before 10-19. Cells without a value are last in both directions.
function numberOf(text) {
  const number = text.replace(/[<,\s]|±.*/g, "").replace("−", "-");
  return Number.parseFloat(number.replace("inf", "Infinity"));
}
const textOf = (text) => text.replace(/^[<>]=? /, "");
const byNumber = (a, b) => a - b;
const byText = new Intl.Collator(undefined, { numeric: true }).compare;
function sortTable(heading) {
  const body = heading.closest("table").tBodies[0];
  const isNumber = heading.classList.contains("number");
  const [keyOf, compare] = isNumber ? [numberOf, byNumber] : [textOf, byText];
  const down = heading.ariaSort !== "descending";
  for (const other of heading.parentElement.cells) other.ariaSort = null;
  heading.ariaSort = down ? "descending" : "ascending";
  const sign = down ? -1 : 1;
  const rows = [...body.rows].map((row) => ({
    row,
    key: keyOf(row.cells[heading.cellIndex].textContent),
  }));
  const isMissing = ({ key }) => key === "" || Number.isNaN(key);
  const given = rows.filter((each) => !isMissing(each));
  given.sort((a, b) => sign * compare(a.key, b.key));
  const sorted = [...given, ...rows.filter(isMissing)];
  body.append(...sorted.map(({ row }) => row));
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
  // Of the sentences themselves, without the names of runs beside them.
  const texts = new Map(
    items.map((item) => [
      item,
      [...item.querySelectorAll("p")].map((p) => p.textContent.toLowerCase()),
    ]),
  );
  let number;
  function show() {
    const [key, sign] = order.value.split(" ");
    items.sort((a, b) => sign * (a.dataset[key] - b.dataset[key]));
    list.append(...items);
    const asked = search.value.toLowerCase();
    const found = items.filter((item) =>
      texts.get(item).some((text) => text.includes(asked)),
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
