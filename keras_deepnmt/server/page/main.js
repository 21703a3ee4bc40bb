// The page: a sentence, and what one or two models make of it.
import { readAddress, writeAddress } from "./address.js";
import { askFor, hasKey, setKey } from "./asking.js";
import { startDocuments } from "./documents.js";
import { byId, make } from "./elements.js";
import { EXAMPLES } from "./examples.js";
import { Pane } from "./pane.js";
import { startTheme } from "./theme.js";

const PAUSE_MS = 250;
const ANNOUNCE_MS = 1200;

const page = {
  text: byId("text"),
  model: byId("model"),
  other: byId("other"),
  otherField: byId("other-field"),
  examples: byId("examples"),
  panes: byId("panes"),
  board: byId("board"),
  keyForm: byId("key-form"),
  announcement: byId("announcement"),
};
const begin = makeBeginField();
let models = [];
let panes = [];
let running = new AbortController();
let turns = 0;
let timer, announceTimer;

function state() {
  return {
    model: page.model.value,
    other: page.other.value,
    // Line breaks are spaces: it is one sentence.
    text: page.text.value.replace(/\s+/g, " ").trim(),
    begin: begin.field.value.trimStart(),
  };
}

// What is asked for has changed: after a pause, translate it.
function changed({ pause = PAUSE_MS } = {}) {
  running.abort();
  clearTimeout(timer);
  clearTimeout(announceTimer);
  writeAddress({ ...state(), text: page.text.value });
  for (const pane of panes) pane.setBusy(true);
  timer = setTimeout(translate, pause);
}

async function translate() {
  running.abort();
  const { signal } = (running = new AbortController());
  const turn = (turns += 1);
  // An answer that comes although it was cancelled is not shown, either.
  const isCurrent = () => turn === turns && !signal.aborted;
  const asked = state();
  if (!asked.text) {
    for (const pane of panes) pane.clear();
    return;
  }
  const made = await Promise.all(
    panes.map((pane) =>
      pane.translate(asked, { signal, isCurrent }).catch((error) => {
        if (isCurrent()) explain(pane, error);
        return null;
      }),
    ),
  );
  if (!isCurrent()) return;
  if (made.length === 2 && !made.includes(null)) {
    panes[0].compareWith(made[1]);
    panes[1].compareWith(made[0]);
  }
  announceTimer = setTimeout(() => {
    page.announcement.textContent = made.filter(Boolean).join(". ");
  }, ANNOUNCE_MS);
  for (const pane of panes) pane.inspect();
}

function explain(pane, error) {
  let words = error.message;
  if (error.retryAfter) {
    words += ` Trying again in ${error.retryAfter} s.`;
    clearTimeout(timer);
    timer = setTimeout(translate, 1000 * error.retryAfter);
  }
  pane.fail(words);
  askForKey(error);
}

function askForKey(error) {
  if (error.status !== 401 && error.status !== 403) return;
  page.keyForm.hidden = false;
}

function makeBeginField() {
  const field = make("input", {
    id: "begin",
    autocomplete: "off",
    spellcheck: "false",
    "aria-describedby": "begin-note",
    oninput: () => changed(),
    onkeydown: (event) => event.key === "Escape" && clear(),
  });
  const clear = () => {
    field.value = "";
    changed({ pause: 0 });
    box.hidden = true;
    page.text.focus();
  };
  const box = make(
    "div",
    { class: "begin", hidden: true },
    make("label", { for: "begin" }, "The translation begins with"),
    make(
      "div",
      { class: "row" },
      field,
      make("button", { type: "button", onclick: clear }, "Clear"),
    ),
    make(
      "p",
      { class: "soft", id: "begin-note" },
      "The rest is completed as you type.",
    ),
  );
  return { box, field };
}

// A word was picked: the translation stays up to it, and it can be changed.
function beginWith(before, word) {
  begin.box.hidden = false;
  begin.field.value = before + word;
  begin.field.focus();
  begin.field.setSelectionRange(before.length, before.length + word.length);
}

function showModels(chosen) {
  const label = (model) => `${model.source} → ${model.target} · ${model.name}`;
  page.model.replaceChildren(
    ...models.map((m) => make("option", { value: m.id }, label(m))),
  );
  if (models.some((m) => m.id === chosen.model)) page.model.value = chosen.model;
  showOthers(chosen.other);
}

// Models of the same languages can be compared.
function showOthers(chosen = "") {
  const own = modelOf(page.model.value);
  const others = models.filter(
    (m) => m !== own && m.source === own.source && m.target === own.target,
  );
  page.otherField.hidden = !others.length;
  page.other.replaceChildren(
    make("option", { value: "" }, "No other model"),
    ...others.map((m) => make("option", { value: m.id }, m.name)),
  );
  if (others.some((m) => m.id === chosen)) page.other.value = chosen;
  showPanes();
}

// A model of several directions is offered in each of them.
const modelOf = (id) => models.find((m) => m.id === id);

function showPanes() {
  const chosen = [page.model.value, page.other.value].filter(Boolean);
  const titled = chosen.length > 1;
  // All of them are given the beginning.
  const canComplete = chosen.every((id) =>
    modelOf(id).tasks.includes("complete"),
  );
  const onbegin = canComplete ? beginWith : undefined;
  if (!canComplete) forgetBeginning();
  panes = chosen.map((id) => new Pane(modelOf(id), { titled, onbegin }));
  page.board.classList.toggle("two", titled);
  page.panes.replaceChildren(...panes.map((pane) => pane.root));
  panes[0].message.after(begin.box);
  const { source, target, tasks } = panes[0].model;
  page.text.lang = source;
  page.text.dir = "auto";
  begin.field.lang = target;
  byId("document").hidden = !tasks.includes("lines");
  showExamples(EXAMPLES[source] ?? []);
}

function showExamples(sentences) {
  page.examples.hidden = !sentences.length;
  page.examples.replaceChildren(
    ...sentences.map((sentence) =>
      make(
        "button",
        {
          type: "button",
          lang: page.text.lang,
          onclick: () => {
            page.text.value = sentence;
            forgetBeginning();
            changed({ pause: 0 });
          },
        },
        sentence,
      ),
    ),
  );
}

// It belonged to another sentence.
function forgetBeginning() {
  begin.field.value = "";
  begin.box.hidden = true;
}

function restore() {
  const kept = readAddress();
  page.text.value = kept.text;
  begin.field.value = kept.begin;
  begin.box.hidden = !kept.begin;
  showModels(kept);
  changed({ pause: 0 });
}

async function start() {
  let offered;
  try {
    offered = await askFor("page/models");
  } catch (error) {
    byId("text-note").textContent = `${error.message} Trying again.`;
    setTimeout(start, 3000);
    return;
  }
  byId("text-note").textContent = "Translated as you type.";
  models = offered.models;
  page.keyForm.hidden = !offered.needs_key || hasKey();
  restore();
  page.text.addEventListener("input", () => {
    forgetBeginning();
    changed();
  });
  page.model.addEventListener("change", () => {
    showOthers(page.other.value);
    forgetBeginning();
    changed({ pause: 0 });
  });
  page.other.addEventListener("change", () => {
    showPanes();
    changed({ pause: 0 });
  });
  page.keyForm.addEventListener("submit", (event) => {
    event.preventDefault();
    setKey(byId("key").value);
    page.keyForm.hidden = true;
    changed({ pause: 0 });
  });
  addEventListener("hashchange", restore);
  startDocuments({
    modelOf: () => panes[0].model,
    maxBytes: offered.max_bytes,
    onrefused: (text) => panes[0].say(text, true),
    onfailure: askForKey,
  });
  if (!matchMedia("(pointer: coarse)").matches) page.text.focus();
}

startTheme(byId("theme"));
start();
