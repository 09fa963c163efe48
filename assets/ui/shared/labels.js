// What the server tells the page once, with its head (ui/app.py): titles, sentences, options.

export const labels = JSON.parse(globalThis.document?.getElementById("omni-labels")?.textContent ?? "{}");
