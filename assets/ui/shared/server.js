// What the page asks its server beside Gradio's events: whether there is news, and whether it is there.
const patience = () => (AbortSignal.timeout ? AbortSignal.timeout(8000) : undefined);

// What the page shows is asked for in one event of Gradio's, which costs it far more than to look whether there is news. `asked` notes the
// values of its inputs and how what is sent is made of them, and makes it; `look` says which parts have changed since it was called last.
let ask = null,
  known = {};
export const news = {
  asked: (values, make) => {
    ask = () => make([...values]);
    return ask().flat();
  },
  look: async server => {
    if (!ask) return [];
    const now = await Promise.race([server.look(ask()), late()]);
    if (!now) throw new Error(NO_ANSWER);
    const changed = Object.keys(now).filter(name => now[name] !== known[name]);
    known = now;
    return changed;
  },
};
const late = () => new Promise(done => setTimeout(done, 8000));

export const NO_ANSWER = "The server gave no answer: its queue may be full, or the connection was lost.";
// Whether the server answers; a proxy that answers for it does not count.
export const alive = async () => {
  try {
    const asked = { method: "HEAD", cache: "no-store", signal: patience() };
    return (await fetch(location.href, asked)).status < 500;
  } catch {
    return false;
  }
};
