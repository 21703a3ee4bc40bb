// Draws maps of values as tables, which screen readers can read, too.
import { make } from "./elements.js";

export function drawMap(map) {
  const [low, high] = map.limits;
  const shareOf = (value) =>
    high > low ? Math.min(1, Math.max(0, (value - low) / (high - low))) : 0;
  const long = map.column_names.some((name) => name.length > 4);
  const head = make(
    "tr",
    {},
    make("td", { class: "none" }),
    ...map.column_names.map((name) =>
      make("th", { scope: "col", class: long ? "turned" : "" }, name),
    ),
  );
  const rows = map.values.map((values, place) =>
    make(
      "tr",
      {},
      make("th", { scope: "row" }, map.row_names[place]),
      ...values.map((value) => cellOf(value, shareOf)),
    ),
  );
  const axes = [map.row_label, map.column_label].filter(Boolean).join(" × ");
  const table = make(
    "table",
    {},
    make("thead", {}, head),
    make("tbody", {}, ...rows),
  );
  return make(
    "div",
    { class: map.column_names.length > 8 ? "wide" : "" },
    make("h3", {}, map.title),
    make("p", { class: "soft" }, `${map.caption} ${capital(axes)}; ${map.unit}.`),
    make(
      "div",
      { class: "scroll", tabindex: 0, role: "group", "aria-label": map.title },
      table,
    ),
  );
}

function cellOf(value, shareOf) {
  if (value === null) return make("td", { class: "none" });
  const share = shareOf(value);
  const digits = Math.abs(value) >= 10 ? 1 : 2;
  const cell = make(
    "td",
    {},
    // A small value is seen by its color; its digits would be noise.
    Math.abs(value) < 0.005 ? "0" : value.toFixed(digits).replace(/^0\./, "."),
  );
  cell.style.setProperty("--weight", share.toFixed(3));
  return cell;
}

const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);
