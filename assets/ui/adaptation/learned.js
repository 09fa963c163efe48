// What is known of each topic memory, by its name: what drafts now, and how many answers it has seen. `why`: why answers teach nothing now, or "".
export const learned = { versions: {}, seen: {}, why: "" };
