// A document goes to the server, and comes back with translations.
import { Failure, sendFile } from "./asking.js";
import { byId, make } from "./elements.js";

// So many parts of a document are told to screen readers.
const SPOKEN_PARTS = 4;

// `onrefused(text)`: says it elsewhere, since the card is hidden.
export function startDocuments({ modelOf, maxBytes, onrefused, onfailure }) {
  const [section, drop, input, status] = [
    "document",
    "drop",
    "file",
    "document-status",
  ].map(byId);
  const [work, spoken, bar, count, cancel] = [
    "document-work",
    "document-spoken",
    "document-progress",
    "document-count",
    "document-cancel",
  ].map(byId);
  let running = null;

  async function translate(file) {
    const model = modelOf();
    // The same file can be chosen again.
    input.value = "";
    if (!file) return;
    if (!model.tasks.includes("lines")) {
      const why = "it is an export, which only translates sentences";
      onrefused(`${model.name} translates no documents: ${why}.`);
      return;
    }
    if (running) {
      const why = "another document is being translated";
      say(`${file.name} is not taken: ${why}. Hand it in afterwards.`, true);
      return;
    }
    if (file.size > maxBytes) {
      say(`${file.name} is too large: the server takes ${maxBytes} bytes.`, true);
      return;
    }
    running = new AbortController();
    say(`Translating ${file.name} …`);
    begin();
    try {
      const fields = new URLSearchParams({ model: model.name, name: file.name });
      if (model.into) {
        fields.set("into", model.into);
        fields.set("source", model.source);
      }
      fields.set("progress", "true");
      const path = `page/document?${fields}`;
      let last = {};
      for await (last of sendFile(path, file, running.signal)) show(last);
      if (last.document === undefined)
        throw new Failure("The server has stopped before the end.");
      offer(last, file.name.replace(/(\.[^.]*)?$/, `.${model.target}$1`));
    } catch (error) {
      const isCancelled = error.name === "AbortError";
      say(isCancelled ? "Cancelled." : error.message, !isCancelled);
      if (work.contains(document.activeElement)) input.focus();
      if (!isCancelled) onfailure(error);
    } finally {
      running = null;
      work.hidden = true;
    }
  }

  // Without a value the bar says that the end is not known.
  function begin() {
    bar.removeAttribute("value");
    count.textContent = spoken.textContent = "";
    work.hidden = false;
  }

  function show({ done, texts }) {
    const part = Math.floor((SPOKEN_PARTS * done) / texts);
    const before = Math.floor((SPOKEN_PARTS * bar.value) / texts);
    bar.max = Math.max(texts, 1);
    bar.value = done;
    count.textContent = `${done} of ${texts}`;
    if (part > before && done < texts)
      spoken.textContent = `${done} of ${texts} texts are translated.`;
  }

  function offer({ texts, cut, document: encoded }, name) {
    const bytes = Uint8Array.from(atob(encoded), (c) => c.charCodeAt(0));
    const href = URL.createObjectURL(new Blob([bytes]));
    const link = make("a", { href, download: name }, `Save ${name}`);
    say(`${texts} ${texts === 1 ? "text" : "texts"} translated. `);
    if (cut) status.append(`${cut} of them have a sentence that is too long. `);
    status.append(link);
    // Who does something else meanwhile is not taken away from it.
    const { activeElement: active, body } = document;
    if (active === body || section.contains(active)) link.focus();
  }

  function say(text, isBad = false) {
    status.textContent = text;
    status.className = isBad ? "message bad" : "message";
  }

  cancel.addEventListener("click", () => running?.abort());
  input.addEventListener("change", () => translate(input.files[0]));
  // Anywhere on the page, so that a browser does not open the file instead.
  addEventListener("dragover", (event) => {
    // Text may be dragged, too.
    if (!event.dataTransfer.types.includes("Files")) return;
    event.preventDefault();
    drop.classList.add("over");
  });
  addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) drop.classList.remove("over");
  });
  addEventListener("drop", (event) => {
    drop.classList.remove("over");
    if (!event.dataTransfer.files.length) return;
    event.preventDefault();
    translate(event.dataTransfer.files[0]);
  });
}
