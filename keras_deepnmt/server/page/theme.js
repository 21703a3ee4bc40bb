// Light or dark: as the system, until the user chooses.

const NAME = "deepnmt-theme";

export function startTheme(button) {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const root = document.documentElement;
  const isDark = () =>
    root.dataset.theme ? root.dataset.theme === "dark" : system.matches;
  const show = () => {
    button.textContent = isDark() ? "Light" : "Dark";
    button.setAttribute("aria-label", `${button.textContent} colors`);
  };
  const use = (theme) => {
    if (theme) root.dataset.theme = theme;
    root.style.colorScheme = root.dataset.theme ?? "";
    show();
  };
  use(localStorage.getItem(NAME));
  system.addEventListener("change", show);
  button.addEventListener("click", () => {
    const theme = isDark() ? "light" : "dark";
    localStorage.setItem(NAME, theme);
    use(theme);
  });
}
