// Asks the server, and says in words why there is no answer.

const KEY = "deepnmt-key";

export class Failure extends Error {
  // `retryAfter`: seconds after which to ask again; none where it cannot help.
  constructor(message, { status = 0, retryAfter } = {}) {
    super(message);
    this.status = status;
    this.retryAfter = retryAfter;
  }
}

export function setKey(key) {
  sessionStorage.setItem(KEY, key);
}

export function hasKey() {
  return Boolean(sessionStorage.getItem(KEY));
}

async function send(path, options) {
  const headers = { ...options.headers };
  const key = sessionStorage.getItem(KEY);
  if (key) headers["X-API-Key"] = key;
  let answer;
  try {
    answer = await fetch(path, { ...options, headers });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Failure("The server does not answer. Does it still run?", {
      retryAfter: 5,
    });
  }
  if (!answer.ok) throw await failureOf(answer);
  return answer;
}

async function failureOf(answer) {
  const said = await answer.json().then(
    (content) => String(content.error ?? ""),
    () => "",
  );
  const { status } = answer;
  const seconds = Number(answer.headers.get("Retry-After")) || undefined;
  const retryAfter = status === 429 || status === 503 ? seconds ?? 2 : undefined;
  return new Failure(wordsOf(status, said), { status, retryAfter });
}

function wordsOf(status, said) {
  const words = {
    401: "The server asks for a key.",
    403: "The server does not know this key.",
    413: `This is too large for the server: ${said}`,
    429: "Too many sentences wait at the moment.",
    500: "The server has made a mistake, which its log names.",
    503: "The model is not ready yet.",
    504: "The translation took too long. Try a shorter sentence.",
  };
  return words[status] ?? sentence(said || `Status ${status}.`);
}

const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1);

export async function askFor(path) {
  return (await send(path, {})).json();
}

export async function ask(path, content, signal) {
  const answer = await send(path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(content),
    signal,
  });
  return answer.json();
}

// Sends a file; yields the lines of JSON that answer it, as they come.
export async function* sendFile(path, file, signal) {
  const answer = await send(path, {
    method: "POST",
    headers: { "Content-Type": "application/octet-stream" },
    body: file,
    signal,
  });
  const reader = answer.body.getReader();
  const decoder = new TextDecoder();
  let held = "";
  for (;;) {
    const { value, done } = await reader.read().catch((error) => {
      if (error.name === "AbortError") throw error;
      return { done: true };
    });
    if (done) break;
    held += decoder.decode(value, { stream: true });
    const lines = held.split("\n");
    held = lines.pop();
    for (const line of lines) {
      const content = JSON.parse(line);
      if (content.error)
        throw new Failure(wordsOf(content.status, content.error), content);
      yield content;
    }
  }
}
