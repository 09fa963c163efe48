// Who this browser is: an id that the server made, sent with each call as a header. Never in an address, never in a cookie.
import { load, save } from "./storage.js";

const VISITOR = "X-OmniDemo-Visitor",
  OPERATOR = "X-OmniDemo-Operator";
const OPERATORS = "#omni-import, #omni-line, #omni-lines, #omni-notice";
const style = document.head.appendChild(document.createElement("style"));
// guest: one who may not change what concerns everybody
export const visitor = {
  id: load("visitor", ""),
  name: "",
  public: false,
  operator: false,
  notice: "",
  get guest() {
    return this.public && !this.operator;
  },
};
const watchers = [];
let key = ""; // the operator's: in memory only
export const session = () => visitor.name;
// Called now, and whenever the server has said who we are.
visitor.watch = watch => {
  watchers.push(watch);
  watch();
};

const headers = given => {
  const all = new Headers(given);
  if (visitor.id) all.set(VISITOR, visitor.id);
  if (key) all.set(OPERATOR, encodeURIComponent(key));
  return all;
};
const here = address => new URL(address, document.baseURI);
export const post = async (path, body = {}, signal) => {
  const answer = await fetch(here(path), {
    method: "POST",
    headers: headers({ "Content-Type": "application/json" }),
    body: JSON.stringify(body),
    signal,
  });
  return { ...(await answer.json()), done: answer.ok };
};
const arrive = async () => {
  const { done, ...facts } = await post("visitor");
  Object.assign(visitor, facts);
  save("visitor", visitor.id);
  // What a visitor may not do is not offered. (Gradio scopes our style sheets, so a class of the page would not reach them.)
  style.textContent = visitor.guest ? `${OPERATORS} { display: none !important; }` : "";
  watchers.forEach(watch => watch());
  return facts;
};
let known = arrive().catch(() => null);
// Says the operator's key; what the server says of it: {operator, said}.
export const sayKey = async given => {
  key = given;
  const { operator, said } = await arrive().catch(error => {
    key = "";
    throw error;
  });
  if (!operator) key = "";
  return { operator, said };
};

// Every call of the page to its server goes through here; `direct` is the browser's own fetch.
export const send = async (direct, input, init) => {
  const request = input instanceof Request ? input : null;
  const address = here(request ? request.url : String(input));
  if (address.origin !== location.origin || !address.pathname.includes("/gradio_api/"))
    return direct(input, init);
  await known;
  const again = () =>
    direct(request ? request.clone() : input, {
      ...init,
      headers: headers(init?.headers ?? request?.headers),
    });
  const answer = await again();
  if (answer.status !== 401) return answer;
  known = arrive().catch(() => null); // the server has another key by now: be somebody new
  await known;
  return again();
};
