import { useEffect, useState } from "preact/hooks";

export type Theme = "auto" | "light" | "dark";

const KEPT = "nicety-theme";

function kept(): Theme {
  try {
    const found = localStorage.getItem(KEPT);
    return found === "light" || found === "dark" ? found : "auto";
  } catch {
    // A file has no storage in some browsers.
    return "auto";
  }
}

/** The theme, a function that changes it, and whether it is dark now. */
export function useTheme(): [Theme, (theme: Theme) => void, boolean] {
  const [theme, setTheme] = useState<Theme>(kept);
  const [systemDark, setSystemDark] = useState(() => matchMedia("(prefers-color-scheme: dark)").matches);
  useEffect(() => {
    const system = matchMedia("(prefers-color-scheme: dark)");
    const changed = () => setSystemDark(system.matches);
    system.addEventListener("change", changed);
    return () => system.removeEventListener("change", changed);
  }, []);
  const dark = theme === "dark" || (theme === "auto" && systemDark);
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  const change = (next: Theme) => {
    setTheme(next);
    try {
      localStorage.setItem(KEPT, next);
    } catch {
      // It then holds for this load of the page alone.
    }
  };
  return [theme, change, dark];
}
