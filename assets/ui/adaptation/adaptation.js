// The Adaptation tab: what its widgets show of one line, and its versions.
import { showAnswers } from "./answers.js";
import { clickable, el, say } from "../shared/dom.js";
import { table, td, th, when, whileVisible } from "../shared/fields.js";
import { format, joined, plural } from "../shared/format.js";
import { visitor } from "../shared/visitor.js";
import { widgets } from "../shared/widgets.js";

const page = { key: "", trigger: () => {} };
export { page as adaptation };
// What the server calls a view.
page.view = (version = 0) => ({ asked: { seen: page.key, version } });
const NOTED = 12000; // so long a refusal stays, though the page asks for its state again and again

widgets.adaptation = (host, { trigger }) => {
  page.trigger = trigger;
  const refused = el("p.alert", { role: "alert", hidden: true });
  let since = 0;
  host.append(refused);
  whileVisible(host, 2000, () => trigger("poll", page.view()));
  return {
    update: value => {
      const s = JSON.parse(value);
      page.key = s.key;
      if (s.note) since = Date.now();
      if (s.note || Date.now() - since > NOTED) say(refused, s.note);
      showAnswers(s.answers);
      versions(s);
    },
  };
};

// ── versions ────────────────────────────────────────────────────────────────────────────────────────────────
let shelf = null;
const none = "There is no version. The trainer publishes the first one after a few answers.";
widgets.versions = host => {
  shelf = host;
  host.append(el("h3", "Adapter versions"), el("p.small", none));
};
const judged = ({ acceptance_before: before, acceptance_after: after, requests }) => {
  if (before == null || after == null)
    return el("span.soft", { title: "It is judged on answers that come after it" }, "–");
  const [then, now] = [before, after].map(share => Math.round(100 * share));
  return el(
    "span",
    {
      class: now > then ? "good" : now < then ? "bad" : null,
      title: `Acceptance on ${plural(requests ?? 0, "new answer")}: under the last version that was found better → under this one`,
    },
    `${then} → ${now} %`,
  );
};
const GONE = "Only the newest versions keep their files, and the last one that was found better";
const ROLLED_BACK = "It guessed worse than the last version that was found better, and was rolled back";
const versionRow = one => {
  const { version, effect } = one,
    press = (face, event, title, label) => {
      const act = () => page.trigger(event, page.view(version));
      return clickable("link", face, act, { title, "aria-label": label });
    };
  const back = version ? `Roll back to version ${version}` : "Roll back to the base drafter",
    use = !one.live && press("Use", "rollback", "Let this version draft", back),
    zip =
      version > 0 &&
      press("↓ zip", "export", "Download as a zip in PEFT's format", `Export version ${version}`);
  const facts = version
    ? [
        when(one.created_at),
        plural(one.steps, "step"),
        one.loss != null && `loss ${one.loss.toFixed(3)}`,
        one.parent != null && `from v${one.parent}`,
      ]
    : ["the drafter without any adapter"];
  return el(
    "tr",
    { title: joined(facts) },
    el(
      "th",
      { scope: "row" },
      version ? `v${version}` : "base",
      one.live && [" ", el("span.badge.good", { title: "This version drafts now" }, "live")],
      effect.rolled_back && [" ", el("span.badge.bad", { title: ROLLED_BACK }, "rolled back")],
    ),
    td(version ? format(one.requests_seen, "count") : "", true),
    td(version ? judged(effect) : ""),
    td(
      version && !one.stored ? el("span.soft", { title: GONE }, "files deleted") : el("span.twice", use, zip),
    ),
  );
};
const versions = s => {
  if (!shelf) return;
  const all = s.versions.length ? [...s.versions, { version: 0, live: s.live === 0, effect: {} }] : [];
  const heads = [
    th("version"),
    th("seen", "Requests that the topic memory had seen", true),
    th(
      "accepted",
      "Share of the tokens whose guess is accepted: under the last version that was found better → under this one, on answers neither had learned from",
    ),
    el("td"),
  ];
  shelf.replaceChildren(
    el("h3", s.line === "default" ? "Adapter versions" : `Adapter versions · ${s.line}`),
    all.length ? el("div.rolls", table(heads, all.map(versionRow))) : el("p.small", none),
    el(
      "p.small",
      `“zip” downloads a version in the format of the PEFT library.${visitor.guest ? "" : " Below you can import one that was trained for the same drafter."}`,
    ),
  );
};
