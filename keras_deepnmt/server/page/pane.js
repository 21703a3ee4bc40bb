// One model's translations of the sentence, and a look inside the model.
import { ask } from "./asking.js";
import { differing, wordsOf } from "./differences.js";
import { make } from "./elements.js";
import { drawMap } from "./maps.js";
import { focusedWord, showWords } from "./words.js";

let count = 0;

export class Pane {
  // `onbegin(before, word)`: the user wants to change a word, and what follows
  // it; none where a translation cannot be completed.
  constructor(model, { titled, onbegin }) {
    this.model = model;
    this.onbegin = onbegin;
    this.open = new Set();
    const id = `pane-${(count += 1)}`;
    this.translation = make("div", { class: "translation" });
    this.sourceWords = make("div", { class: "source-words" });
    this.message = make("p", { class: "message", role: "status" });
    this.caption = make(
      "p",
      { class: "soft caption", hidden: true },
      make("span", {}, onbegin ? "Choose a word to write on from there." : ""),
      make("span", {}, "score"),
    );
    this.others = make("ol", { class: "others", "aria-label": "Translations" });
    this.inside = make("div");
    this.root = make(
      "section",
      { class: "card", "aria-labelledby": id },
      make("h2", { id }, titled ? model.name : "Translation"),
      this.translation,
      this.sourceWords,
      this.message,
      this.caption,
      this.others,
      this.inside,
    );
    this.clear();
  }

  clear(note = "") {
    this.translations = [];
    this.chosen = 0;
    this.compared = null;
    for (const part of [this.translation, this.sourceWords, this.others])
      part.replaceChildren();
    this.inside.replaceChildren();
    this.caption.hidden = true;
    this.say(note);
    this.setBusy(false);
  }

  setBusy(isBusy) {
    this.root.classList.toggle("busy", isBusy);
    this.root.setAttribute("aria-busy", String(isBusy));
  }

  say(text, isBad = false) {
    this.message.textContent = text;
    this.message.classList.toggle("bad", isBad);
  }

  fail(text) {
    this.clear();
    this.say(text, true);
  }

  // Asks for translations; those of an earlier request are never shown.
  async translate(state, request) {
    const { translations } = await ask(
      "page/translate",
      {
        model: this.model.name,
        into: this.model.into,
        text: state.text,
        prefix: state.begin,
      },
      request.signal,
    );
    if (!request.isCurrent()) return "";
    this.state = state;
    this.request = request;
    this.translations = translations;
    this.chosen = 0;
    this.inspection = null;
    this.compared = null;
    this.setBusy(false);
    this.say("");
    this.inside.replaceChildren();
    this.show();
    return translations[0]?.text ?? "";
  }

  get text() {
    return this.translations[this.chosen]?.text ?? "";
  }

  compareWith(text) {
    this.compared = text;
    this.show();
  }

  show() {
    if (!this.translations.length) return;
    this.showTranslation();
    this.showOthers();
  }

  showTranslation() {
    // The words are those of the model's answer, once it is there.
    const parts = this.inspection?.target ?? plainParts(this.text);
    const links = this.inspection?.links ?? [];
    const held = [this.sourceWords, this.translation].map(focusedWord);
    // Until the answer is there, the sentence is shown only to keep the focus.
    const sourceParts =
      this.inspection?.source ?? (held[0] < 0 ? [] : plainParts(this.state.text));
    const aligned = (from, number) =>
      links
        .filter((pair) => pair[from] === number)
        .map((pair) => pair[1 - from]);
    const light = (from, number) => {
      dim();
      const sides = [source.buttons, target.buttons];
      sides[from][number]?.classList.add("linked");
      for (const other of aligned(from, number))
        sides[1 - from][other]?.classList.add("linked");
    };
    const dim = () => {
      for (const button of [...source.buttons, ...target.buttons])
        button.classList.remove("linked");
    };
    const side = (from) => ({
      onfocus: (number) => light(from, number),
      onleave: dim,
    });
    const target = showWords(parts, {
      ...side(1),
      label: "Translation, word by word",
      lang: this.model.target,
      isPlain: !this.onbegin && !this.model.tasks.includes("inspect"),
      onpick: this.onbegin && ((number) => this.editFrom(parts, number)),
    });
    const source = showWords(sourceParts, {
      ...side(0),
      label: "Sentence, word by word",
      lang: this.model.source,
    });
    const nameOf = (all, number) =>
      all.find((part) => part[1] === number)?.[0] ?? "";
    if (this.inspection) {
      const { source: from } = this.inspection;
      target.buttons.forEach((button, number) => {
        const words = aligned(1, number).map((n) => nameOf(from, n));
        if (words.length)
          button.setAttribute("aria-description", `from ${words.join(" ")}`);
      });
      source.buttons.forEach((button, number) => {
        const words = aligned(0, number).map((n) => nameOf(parts, n));
        if (words.length)
          button.setAttribute("aria-description", `to ${words.join(" ")}`);
      });
    }
    this.markGiven(parts, target.buttons);
    if (this.compared !== null) markWords(target, parts, this.compared);
    this.translation.replaceChildren(target.box);
    this.sourceWords.replaceChildren(...(source.buttons.length ? [source.box] : []));
    for (const [side, number] of [[source, held[0]], [target, held[1]]]) {
      const last = side.buttons.length - 1;
      if (number >= 0 && last >= 0) side.focus(Math.min(number, last));
    }
  }

  markGiven(parts, buttons) {
    const given = this.state.begin.trimEnd().length;
    let at = 0;
    for (const [text, number] of parts) {
      if (number !== null && at < given) buttons[number].classList.add("given");
      at += text.length;
    }
  }

  editFrom(parts, number) {
    const place = parts.findIndex((part) => part[1] === number);
    const before = parts.slice(0, place).map((part) => part[0]);
    const word = parts[place][0];
    this.onbegin(before.join(""), word);
  }

  showOthers() {
    const best = wordsOf(this.translations[0].text);
    const items = this.translations.map((translation, place) => {
      const words = wordsOf(translation.text);
      const differ = differing(words, best);
      const shown = make("span", { lang: this.model.target, dir: "auto" });
      words.forEach((word, at) =>
        shown.append(differ[at] && word.trim() ? make("mark", {}, word) : word),
      );
      const score = translation.score.toFixed(2);
      return make(
        "li",
        {},
        make(
          "button",
          {
            type: "button",
            "aria-current": place === this.chosen ? "true" : null,
            onclick: () => this.choose(place),
          },
          shown,
          make(
            "span",
            { class: "score" },
            make("span", { class: "unseen" }, "score "),
            score,
          ),
        ),
      );
    });
    const focused = [...this.others.children].findIndex((item) =>
      item.contains(document.activeElement),
    );
    this.caption.hidden = false;
    this.others.replaceChildren(...items);
    if (focused >= 0) items[focused]?.firstChild.focus();
  }

  async choose(place) {
    this.chosen = place;
    this.inspection = null;
    this.say("");
    this.inside.replaceChildren();
    this.show();
    await this.inspect();
  }

  // Asks what the model attends to, where it can tell.
  async inspect() {
    const { request, text } = this;
    const isWanted = () =>
      this.request === request && request.isCurrent() && this.text === text;
    if (!text || !this.model.tasks.includes("inspect")) return;
    let found;
    try {
      found = await ask(
        "page/inspect",
        {
          model: this.model.name,
          into: this.model.into,
          source: this.state.text,
          target: text,
        },
        request.signal,
      );
    } catch (error) {
      // The translation is what was asked for; it stays.
      if (isWanted())
        this.say(`No look inside the model: ${error.message}`);
      return;
    }
    if (!isWanted()) return;
    this.inspection = found;
    this.showTranslation();
    this.showInside();
  }

  showInside() {
    const { attention, panels } = this.inspection;
    const groups = [];
    if (attention) groups.push({ title: "Attention", maps: [attention] });
    groups.push(...panels);
    this.inside.replaceChildren(
      ...groups.map(({ title, maps }) => {
        const details = make(
          "details",
          { open: this.open.has(title) },
          make("summary", {}, title),
        );
        const fill = () => {
          if (details.childElementCount > 1) return;
          details.append(make("div", { class: "maps" }, ...maps.map(drawMap)));
        };
        if (details.open) fill();
        details.addEventListener("toggle", () => {
          if (details.open) this.open.add(title), fill();
          else this.open.delete(title);
        });
        return details;
      }),
    );
  }
}

function plainParts(text) {
  let number = 0;
  return wordsOf(text).map((part) => [part, part.trim() ? number++ : null]);
}

function markWords({ buttons }, parts, compared) {
  const words = parts.map((part) => part[0]);
  differing(words, wordsOf(compared)).forEach((differs, place) => {
    const number = parts[place][1];
    if (!differs || number === null) return;
    const button = buttons[number];
    button.replaceChildren(make("mark", {}, ...button.childNodes));
  });
}
