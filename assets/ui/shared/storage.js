// Storage may be full or forbidden: the page then simply forgets.
export const tried = (act, otherwise = null) => {
  try {
    return act();
  } catch {
    return otherwise;
  }
};
export const put = (name, text) =>
  tried(() => {
    localStorage.setItem(name, text);
    return true;
  }, false);
export const load = (key, fallback) =>
  tried(() => JSON.parse(localStorage.getItem(`omnidemo.${key}`))) ?? fallback;
export const save = (key, value) => put(`omnidemo.${key}`, JSON.stringify(value));
// Keeps the first of these values that has room, or nothing.
export const saveFitting = (key, values, room = 400_000) => {
  const value = values.find(one => JSON.stringify(one).length <= room);
  if (!value || !save(key, value)) save(key, null);
};
