// Storage may be full or forbidden: the page then simply forgets.
export const load = (key, fallback) => {
  try {
    return JSON.parse(localStorage.getItem(`omnidemo.${key}`)) ?? fallback;
  } catch {
    return fallback;
  }
};
export const save = (key, value) => {
  try {
    localStorage.setItem(`omnidemo.${key}`, JSON.stringify(value));
    return true;
  } catch {
    return false;
  }
};
