// Shows a text word by word: arrow keys move, and the aligned words light up.
import { make } from "./elements.js";

// `parts`: texts with the numbers of their words, `null` between words.
// `isPlain`: there is nothing to see or do at a word.
// Returns the element, the button of each word, and what gives the focus to one.
export function showWords(
  parts,
  { label, lang, isPlain = false, onfocus, onleave, onpick },
) {
  const buttons = [];
  const box = make("div", {
    class: "words",
    role: "group",
    "aria-label": label,
    lang,
    dir: "auto",
  });
  for (const [text, number] of parts) {
    if (number === null) {
      box.append(text);
      continue;
    }
    const button = isPlain
      ? make("span")
      : make("button", {
          type: "button",
          tabindex: buttons.length ? -1 : 0,
          onmouseenter: () => onfocus(number),
          onmouseleave: onleave,
          onfocus: () => onfocus(number),
          onblur: onleave,
          onclick: () => onpick?.(number),
        });
    button.append(text);
    buttons.push(button);
    box.append(button);
  }
  const focus = (number) => {
    for (const button of buttons) button.tabIndex = -1;
    buttons[number].tabIndex = 0;
    buttons[number].focus();
  };
  box.addEventListener("keydown", (event) => {
    const at = buttons.indexOf(document.activeElement);
    const to = {
      ArrowRight: at + 1,
      ArrowLeft: at - 1,
      Home: 0,
      End: buttons.length - 1,
    }[event.key];
    if (at < 0 || buttons[to] === undefined) return;
    event.preventDefault();
    focus(to);
  });
  return { box, buttons, focus };
}

// The number of the word in an element that has the focus; -1 if none has it.
export const focusedWord = (element) =>
  [...element.querySelectorAll(".words button")].indexOf(document.activeElement);
