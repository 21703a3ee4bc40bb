// Keeps what is shown in the address, after `#`, which no server receives.

const NAMES = ["model", "other", "text", "begin"];

export function readAddress() {
  const fields = new URLSearchParams(location.hash.slice(1));
  return Object.fromEntries(NAMES.map((name) => [name, fields.get(name) ?? ""]));
}

export function writeAddress(state) {
  const fields = new URLSearchParams();
  for (const name of NAMES) if (state[name]) fields.set(name, state[name]);
  const hash = fields.toString();
  history.replaceState(null, "", hash ? `#${hash}` : location.pathname);
}
