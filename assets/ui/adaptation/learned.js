// What is known of each topic memory, by its name: what drafts now, and how many answers it has seen. `shown`: the one that the panel of learning shows, null before there is a pair. `why`: why answers teach nothing now, or "".
export const learned = { versions: {}, seen: {}, shown: null, why: "" };
