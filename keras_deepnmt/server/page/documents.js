// A document goes to the server, and comes back with translations.
import { sendFile } from "./asking.js";
import { byId, make } from "./elements.js";

export function startDocuments({ modelOf, maxBytes, onfailure }) {
  const [drop, input, status] = ["drop", "file", "document-status"].map(byId);
  let isBusy = false;

  async function translate(file) {
    if (!file || isBusy) return;
    const model = modelOf();
    if (file.size > maxBytes) {
      say(`${file.name} is too large: the server takes ${maxBytes} bytes.`, true);
      return;
    }
    isBusy = true;
    say(`Translating ${file.name} …`);
    try {
      const fields = new URLSearchParams({ model: model.name, name: file.name });
      if (model.into) fields.set("into", model.into);
      const answer = await sendFile(`page/document?${fields}`, file);
      const blob = await answer.blob();
      const [texts, cut] = ["X-Texts", "X-Texts-Cut"].map((name) =>
        Number(answer.headers.get(name)),
      );
      const name = file.name.replace(/(\.[^.]*)?$/, `.${model.target}$1`);
      const link = make(
        "a",
        { href: URL.createObjectURL(blob), download: name },
        `Save ${name}`,
      );
      say(`${texts} texts translated. `);
      if (cut)
        status.append(`${cut} of them have a sentence that is too long. `);
      status.append(link);
      link.focus();
    } catch (error) {
      say(error.message, true);
      onfailure(error);
    } finally {
      isBusy = false;
      input.value = "";
    }
  }

  function say(text, isBad = false) {
    status.textContent = text;
    status.className = isBad ? "message bad" : "message";
  }

  input.addEventListener("change", () => translate(input.files[0]));
  // Anywhere on the page, so that a browser does not open the file instead.
  addEventListener("dragover", (event) => {
    event.preventDefault();
    drop.classList.add("over");
  });
  addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) drop.classList.remove("over");
  });
  addEventListener("drop", (event) => {
    if (!event.dataTransfer.files.length) return;
    event.preventDefault();
    drop.classList.remove("over");
    translate(event.dataTransfer.files[0]);
  });
}
