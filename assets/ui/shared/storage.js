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
// Keeps the first of these values that has room, or nothing.
export const saveFitting = (key, values, room = 400_000) => {
  const value = values.find(one => JSON.stringify(one).length <= room);
  if (!value || !save(key, value)) save(key, null);
};
